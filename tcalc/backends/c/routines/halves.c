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

typedef struct {
    const real *x;
    long xr, xc;
    real *out;
    long n, k, parts;
} squared;

/* Where a part begins, for halves of rows that are as many entries in all parts. */
static long begin_of_part(long n, long part, long parts)
{
    long low = (long)((double)n * sqrt((double)part / (double)parts));
    return part < parts ? low / EVEN * EVEN : n;
}

/* Rows of it, up to the diagonal. */
static int part_of_square(char **given, long chunk, long worker)
{
    squared f = *(const squared *)given[0];
    long low = begin_of_part(f.n, chunk, f.parts);
    long rows = begin_of_part(f.n, chunk + 1, f.parts) - low;
    const real *x = f.x + low * f.xr;
    (void)worker;
    product_alone(1, x, f.xr, f.xc, f.x, f.xc, f.xr, 0, f.out + low * f.n, f.n, rows, f.k, low);
    square_alone(x, f.xr, f.xc, f.out + low * (f.n + 1), f.n, rows, f.k);
    return 0;
}

/* out = x x', contiguous. */
static void symmetric_square(const real *x, long xr, long xc, real *out, long n, long k)
{
    if (n <= 0)
        return;
    multiplied all = {1, x, xr, xc, x, xc, xr, 0, out, n, n, k, n, 0, 0, 0};
    if ((double)n * n * k <= FEW)
        multiply_panels(1, x, xr, xc, x, xc, xr, 0, out, n, n, k, 0, 0);
    else if (!by_terms(all, 1)) {
        /* more parts than threads for whoever is done first, where none has few rows */
        long threads = threads_of_blas ? threads_of_blas() : 1;
        long turns = smaller(4, n / (4 * BROAD * threads));
        squared f = {x, xr, xc, out, n, k, threads * larger(1, turns)};
        if (threads < 2)
            square_alone(x, xr, xc, out, n, n, k);
        else
            spread_parts(part_of_square, (char *[]){(char *)&f}, f.parts, threads, 1);
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
