/* Columns: gaps, extremes, signs; and the table of all routines. Works on what products.c has. */

/* By how much eigenvalues or singular values, which are s entries apart, differ where they are equal. */
static real rounding_of(const real *w, long s, long n)
{
    real size = 0;
    for (long i = 0; i < n; i++)
        size = F(fabs)(w[i * s]) > size ? F(fabs)(w[i * s]) : size;
    return (real)larger(n, 16) * EPSILON * size;
}

/* 1 unless every difference of consecutive values, which are in order, is larger than that. */
static int gaps_close(const real *w, long s, long n)
{
    real rounding = rounding_of(w, s, n);
    int close = 0;
    for (long i = 0; i + 1 < n; i++)
        close |= !(F(fabs)(w[(i + 1) * s] - w[i * s]) > rounding);
    return close;
}

/* 1 unless all singular values are above 0. */
static int zero_among(const real *w, long s, long n)
{
    real rounding = rounding_of(w, s, n);
    int zero = 0;
    for (long i = 0; i < n; i++)
        zero |= !(w[i * s] > rounding);
    return zero;
}

/* The largest, the smallest and the sum of what is in each column of n > 0 rows. */
static inline void extremes(const real *v, long row, long n, long width, real *top, real *low,
                            real *sum)
{
    for (long j = 0; j < width; j++)
        top[j] = low[j] = sum[j] = v[j];
    for (long i = 1; i < n; i++)
#pragma omp simd
        for (long j = 0; j < width; j++) {
            real x = v[i * row + j];
            top[j] = x > top[j] ? x : top[j];
            low[j] = x < low[j] ? x : low[j];
            sum[j] += x;
        }
}

/* NaN, which comparisons pass over, is found in the sum. */
static int sign_of(real top, real low, real sum, real *out)
{
    *out = top < -low ? -1 : 1;
    return top == -low || sum != sum;
}

/* Of one column, which is read as rows of LANES entries where it is contiguous, and the rest. */
static int sign_along(const real *column, long step, long n, real *out)
{
    real top[LANES + 1] = {0}, low[LANES + 1] = {0}, sum[LANES + 1] = {0};
    long rows = step == 1 ? n / LANES : 0, rest = n - rows * LANES, found = 0;
    if (rows) {
        extremes(column, LANES, rows, LANES, top, low, sum);
        found = LANES;
    }
    if (rest) {
        extremes(column + rows * LANES, step, rest, 1, top + found, low + found, sum + found);
        found++;
    }
    for (long i = 1; i < found; i++) {
        top[0] = top[i] > top[0] ? top[i] : top[0];
        low[0] = low[i] < low[0] ? low[i] : low[0];
        sum[0] += sum[i];
    }
    return sign_of(top[0], low[0], sum[0], out);
}

/* out[j] = the sign of the entry of column j that is largest in magnitude; 1 for ties and NaN. */
static int column_signs(const real *v, long vr, long vc, real *out, long n, long m)
{
    int refused = 0;
    if (n <= 0)
        for (long j = 0; j < m; j++)
            out[j] = 1;
    else if (vc != 1)
        for (long j = 0; j < m; j++)
            refused |= sign_along(v + j * vc, vr, n, out + j);
    else
        for (long first = 0; first < m; first += WIDE) {
            long width = smaller(WIDE, m - first);
            real top[WIDE], low[WIDE], sum[WIDE];
            extremes(v + first, vr, n, width, top, low, sum);
            for (long j = 0; j < width; j++)
                refused |= sign_of(top[j], low[j], sum[j], out + first + j);
        }
    return refused;
}

/* What others call, in the order in which these are told apart. */
void *const tcalc_routines[] = {
    product, product_of_step, product_half, symmetric_square, weighted_square, solve_lower, congruence,
    cholesky, cholesky_pullback,
    gaps_close, zero_among, column_signs, inverse_definite, tri_inverse, identities,
    factor_lu, solve_lu, inv_lu, logdet_lu, det_lu, det_sign_lu,
    solve_general, inv, logdet, det, det_sign, adj, logdet_definite,
    digamma, polygamma, log_ndtr, inverse_mills, betaln, beta_function, erfinv, erfcinv, ndtri,
    expm, expm_frechet, expm_frechet2, adj_frechet,
    eigh, lq, svd, squared_distances, weighted, crossed, by_columns, columns_of,
    windows_over_few, windows_over_many,
};
