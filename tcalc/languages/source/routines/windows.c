/* Have all windows of so many entries of a line about the same square sum, so that none of their
   products is much smaller than its terms? */
static int even(ptrdiff_t m, ptrdiff_t count, const real *a)
{
    real energy = dot(count, a, a), least = energy, most = energy;
    for (ptrdiff_t i = 1; i < m; i++) {
        energy += a[i - 1 + count] * a[i - 1 + count] - a[i - 1] * a[i - 1];
        least = energy < least ? energy : least;
        most = energy > most ? energy : most;
    }
    return least >= most / 4;
}

/* c_ij = sum_k a_(i + k) b_(j + k) for m windows of a and n of b: the one before, less a product, plus
   one, where no digits cancel. */
static void lags(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count, const real *a, const real *b, real *c)
{
    int steps = even(m, count, a) && (a == b || even(n, count, b));
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            if (a == b && j < i && i < n)
                c[i * n + j] = c[j * n + i];
            else if (steps && i && j)
                c[i * n + j] = c[(i - 1) * n + j - 1] - a[i - 1] * b[j - 1]
                               + a[i - 1 + count] * b[j - 1 + count];
            else
                c[i * n + j] = dot(count, a + i, b + j);
}
