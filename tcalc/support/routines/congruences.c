/* X B X' of symmetric B, for X the inverse of a lower triangle l. Works on what triangles.c has. */

/* X B X' over a small symmetric B for X = l^-1, of which the entries from the diagonal on are read. */
static void congruent_small(const real *l, ptrdiff_t lr, ptrdiff_t lc, real *b, ptrdiff_t ldb,
                            ptrdiff_t n)
{
    real left[SMALL * SMALL] = {0}, whole[SMALL * SMALL] = {0};
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = i; j < n; j++)
            left[i * SMALL + j] = left[j * SMALL + i] = b[i * ldb + j];
    solve_small(l, lr, lc, 0, left, SMALL, n, SMALL);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            whole[i * SMALL + j] = left[j * SMALL + i];
    solve_small(l, lr, lc, 0, whole, SMALL, n, SMALL);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = i; j < n; j++)
            b[i * ldb + j] = b[j * ldb + i] = whole[i * SMALL + j];
}

/* X B X' over B, X = l^-1, by halves of l: with C = X1 B12, which the first half leaves above the
   diagonal, and D = C - X1 B11 X1' l21', what is left for the last half is B22 - D' l21' - l21 C. */
static void congruent(const real *l, ptrdiff_t lr, ptrdiff_t lc, real *b, ptrdiff_t ldb,
                      ptrdiff_t n)
{
    if (n <= SMALL) {
        congruent_small(l, lr, lc, b, ldb, n);
        return;
    }
    ptrdiff_t h = middle_row(n), m = n - h;
    const real *below = l + h * lr, *last = l + h * (lr + lc);
    real *right = b + h, *left = b + h * ldb, *rest = b + h * (ldb + 1);
    congruent(l, lr, lc, b, ldb, h);
    solve_triangle(l, lr, lc, 0, right, ldb, h, m);
    multiply_panels(-1, below, lr, lc, right, ldb, 1, 1, rest, ldb, m, h, 1, 0);
    block_product(-1, b, ldb, 1, below, lc, lr, 1, right, ldb, h, h, m);
    multiply_panels(-1, right, 1, ldb, below, lc, lr, 1, rest, ldb, m, h, 1, 0);
    transposed_copy(right, left, ldb, m, h);
    solve_triangle(last, lr, lc, 0, left, ldb, m, h);
    transposed_copy(left, right, ldb, h, m);
    congruent(last, lr, lc, rest, ldb, m);
}

/* The whole of it over the whole of B; 1 if there is a zero on the diagonal of l. */
static int congruence(const real *l, ptrdiff_t lr, ptrdiff_t lc, real *b, ptrdiff_t ldb,
                      ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        if (l[i * (lr + lc)] == 0)
            return 1;
    if (n > 0)
        congruent(l, lr, lc, b, ldb, n);
    return 0;
}
