/* Products x' diag(d) x as squares of rows, of which half is multiplied. Works on what halves.c
   has. */

/* Rows that are scaled together, whose roots stay in registers and the first cache. */
enum { SCALED = 64 };

typedef struct {
    const real *x;
    long xr, xc;
    const real *d;
    long dr;
    const long *order; /* of the rows, or 0 where all come as they lie */
    real *rows;
    long m, n, length;
} scaling;

/* The rows, or where x lies by columns these, times the roots of what they weigh. */
static int part_of_scaling(char **given, long chunk, long worker)
{
    scaling f = *(const scaling *)given[0];
    long first = chunk * f.length, last = smaller(first + f.length, f.m);
    (void)worker;
    for (long low = first; low < last; low += SCALED) {
        long count = smaller(SCALED, last - low);
        real roots[SCALED];
        for (long i = 0; i < count; i++)
            roots[i] = F(sqrt)(F(fabs)(f.d[(f.order ? f.order[low + i] : low + i) * f.dr]));
        if (!f.order && f.xc != 1) {
            for (long j = 0; j < f.n; j++)
                for (long i = 0; i < count; i++)
                    f.rows[j * f.m + low + i] = roots[i] * f.x[(low + i) * f.xr + j * f.xc];
            continue;
        }
        for (long i = 0; i < count; i++) {
            const real *from = f.x + (f.order ? f.order[low + i] : low + i) * f.xr;
            real *to = f.rows + (low + i) * f.n;
            if (f.xc == 1)
                for (long j = 0; j < f.n; j++)
                    to[j] = roots[i] * from[j];
            else
                for (long j = 0; j < f.n; j++)
                    to[j] = roots[i] * from[j * f.xc];
        }
    }
    return 0;
}

/* Is every number of these rows finite where its weight is 0? */
static int weightless_finite(const real *x, long xr, long xc, const real *d, long dr, long m, long n)
{
    real sum = 0;
    for (long i = 0; i < m; i++)
        if (d[i * dr] == 0)
            for (long j = 0; j < n; j++)
                sum += 0 * x[i * xr + j * xc];
    return sum == 0;
}

/* out = x' diag(d) x, contiguous, for m rows of n; `rows` is memory for as many entries as x has.

   Rows without a weight are left out where they are a quarter or more, as of data that no constraint
   is active for; where they are not finite 0 times one of them is no 0. */
static void weighted_square(const real *x, long xr, long xc, const real *d, long dr, real *rows,
                            real *out, long m, long n)
{
    long above = 0, below = 0, none = 0, *order = 0;
    for (long i = 0; i < m; i++) {
        above += d[i * dr] > 0;
        below += d[i * dr] < 0;
        none += d[i * dr] == 0;
    }
    int fewer = none > 0 && 4 * none >= m && weightless_finite(x, xr, xc, d, dr, m, n);
    int ordered = fewer || (below && below < m);
    if (ordered)
        order = malloc((size_t)larger(1, m) * sizeof(long));
    if (above + below + none < m || (ordered && !order)) { /* nan, or no memory */
        free(order);
        for (long i = 0; i < m; i++)
            for (long j = 0; j < n; j++)
                rows[i * n + j] = d[i * dr] * x[i * xr + j * xc];
        product(1, x, xc, xr, rows, n, 1, 0, out, n, n, m, n);
        return;
    }
    above = fewer ? above : m - below;
    long count = above + below;
    if (ordered)
        for (long i = 0, up = 0, down = above; i < m; i++)
            if (d[i * dr] < 0)
                order[down++] = i;
            else if (d[i * dr] > 0 || !fewer)
                order[up++] = i;
    long threads = threads_for(4.0 * count * n), length = count;
    if (threads > 1)
        length = (count / (2 * threads) + SCALED) / SCALED * SCALED;
    scaling f = {x, xr, xc, d, dr, order, rows, count, n, length};
    char *given[] = {(char *)&f};
    if (threads > 1)
        spread_parts(part_of_scaling, given, (count + length - 1) / length, threads, 0);
    else
        part_of_scaling(given, 0, 0);
    free(order);
    int columns = !ordered && xc != 1;
    long lr = columns ? count : 1, lc = columns ? 1 : n;
    if (!count)
        memset(out, 0, (size_t)(n * n) * sizeof(real));
    else if (above) {
        symmetric_square(rows, lr, lc, out, n, above);
        if (below)
            product_half(-1, rows + above * lc, lr, lc, rows + above * lc, lc, lr, 1, out, n, n,
                         below, 3, 0);
    } else {
        symmetric_square(rows, lr, lc, out, n, below);
        for (long i = 0; i < n * n; i++)
            out[i] = -out[i];
    }
}
