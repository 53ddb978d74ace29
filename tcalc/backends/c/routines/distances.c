/* Squared distances between the rows of two matrices: differences, so that nothing cancels. */

/* Vectors of entries, how many of them are made at a time, and entries of a row that are. */
typedef real lanes __attribute__((vector_size(64)));
enum { VECTORS = 4, ACROSS = VECTORS * 64 / sizeof(real), DEPTH = 128 };

/* out[i, j] = |a_i - b_j|^2 for n rows of a and m of b, of k entries; rows of out are `lead` apart. */
static void squared_distances(const real *a, long ar, long ac, const real *b, long br, long bc,
                              real *out, long lead, long n, long m, long k)
{
    lanes held[DEPTH * VECTORS];
    real *packed = (real *)held;
    for (long l0 = 0; l0 < k || l0 == 0; l0 += DEPTH)
        for (long j0 = 0; j0 < m; j0 += ACROSS) {
            long depth = smaller(DEPTH, k - l0), width = smaller(ACROSS, m - j0);
            for (long l = 0; l < depth; l++)
                for (long j = 0; j < ACROSS; j++)
                    packed[l * ACROSS + j] = j < width ? b[(j0 + j) * br + (l0 + l) * bc] : 0;
            for (long i = 0; i < n; i++) {
                lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
                const real *x = a + i * ar + l0 * ac;
                for (long l = 0; l < depth; l++) {
                    const lanes *y = held + l * VECTORS;
                    lanes d0 = x[l * ac] - y[0], d1 = x[l * ac] - y[1];
                    lanes d2 = x[l * ac] - y[2], d3 = x[l * ac] - y[3];
                    s0 += d0 * d0, s1 += d1 * d1, s2 += d2 * d2, s3 += d3 * d3;
                }
                lanes found[VECTORS] = {s0, s1, s2, s3};
                const real *sum = (const real *)found;
                real *row = out + i * lead + j0;
                if (l0)
                    for (long j = 0; j < width; j++)
                        row[j] += sum[j];
                else if (width == ACROSS)
                    memcpy(row, sum, sizeof found);
                else
                    memcpy(row, sum, width * sizeof(real));
            }
        }
}
