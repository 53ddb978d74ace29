/* Products of arrays that hold two summed axes in opposite orders, by square blocks of both. */

/* Rows and columns of a block, and vectors of a row of it. */
enum { CROSS = 64, CROSSED = CROSS / LANE };

/* The sum over a block of x[i, j] held[i, j]. */
static real of_block(const real *x, long xi, long xj, const lanes *held, long rows, long columns)
{
    const real *entry = (const real *)held;
    lanes s[CROSSED] = {{0}};
    real sum = 0;
    if (xj == 1 && columns == CROSS) {
        for (long i = 0; i < rows; i++)
            for (int v = 0; v < (int)CROSSED; v++)
                s[v] += *(const lanes *)(x + i * xi + v * LANE) * held[i * CROSSED + v];
        for (int v = 1; v < (int)CROSSED; v++)
            s[0] += s[v];
        return total(s[0]);
    }
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++)
            sum += x[i * xi + j * xj] * entry[i * CROSS + j];
    return sum;
}

/* out[l, k] = the sum over i and j of x[i, l, j] y[j, k, i], contiguous, for m rows i and n rows j.
   Where y is the same array as x, blocks on one side of the diagonal are enough. */
static void crossed(const real *x, long xi, long xl, long xj, const real *y, long yj, long yk,
                    long yi, real *out, long m, long p, long n, long q, int same)
{
    lanes held[CROSS * CROSSED];
    real *entry = (real *)held;
    memset(out, 0, p * q * sizeof(real));
    for (long i0 = 0; i0 < m; i0 += CROSS)
        for (long j0 = 0; j0 < (same ? i0 + 1 : n); j0 += CROSS) {
            long rows = smaller(CROSS, m - i0), columns = smaller(CROSS, n - j0);
            for (long k = 0; k < q; k++) {
                const real *read = y + j0 * yj + k * yk + i0 * yi;
                for (long j = 0; j < columns; j++)
                    for (long i = 0; i < rows; i++)
                        entry[i * CROSS + j] = read[j * yj + i * yi];
                for (long l = 0; l < p; l++) {
                    const real *from = x + i0 * xi + l * xl + j0 * xj;
                    real sum = of_block(from, xi, xj, held, rows, columns);
                    out[l * q + k] += sum;
                    if (same && j0 < i0)
                        out[k * q + l] += sum;
                }
            }
        }
}
