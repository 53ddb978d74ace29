/* Halves of products. Works on what products.c and the triangles that printed programs share have. */

/* The half of a square product that is wanted: 1 lower, 2 upper, 3 lower and mirrored. In the
   blocks of the diagonal all entries are there. */
static void product_half(real alpha, const real *x, long xr, long xc, const real *y, long yr,
                         long yc, real beta, real *out, long ldo, long n, long k, int half,
                         int shorter)
{
    long panel = panel_rows(n);
    multiply_panels(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, n, k, half == 2, shorter);
    for (long i = 0; i < n && half < 3; i++) {
        long low = i / panel * panel, high = smaller(low + panel, n);
        long from = half == 1 ? high : 0, to = half == 1 ? n : low;
        memset(out + i * ldo + from, 0, (size_t)(to - from) * sizeof(real));
    }
    if (half == 3)
        mirrored(out, ldo, n);
}

/* out = x x', contiguous. */
static void symmetric_square(const real *x, long xr, long xc, real *out, long n, long k)
{
    if (n <= 0)
        return;
    if ((double)n * n * k <= FEW)
        multiply_panels(1, x, xr, xc, x, xc, xr, 0, out, n, n, k, 0, 0);
    else {
        int ni = (int)n, ki = (int)k, ld;
        real zero = 0, one = 1;
        char other = flag(n, k, xr, xc, &ld) == 'N' ? 'T' : 'N';
        syrk_("U", &other, &ni, &ki, &one, x, &ld, &zero, out, &ni);
    }
    mirrored(out, n, n);
}

/* So many matrices, one behind the other, become identities. */
static void identities(real *a, long count, long n)
{
    for (long k = 0; k < count; k++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++)
                a[(k * n + i) * n + j] = i == j;
}
