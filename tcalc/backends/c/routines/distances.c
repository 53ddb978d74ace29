/* Squared distances between the rows of two matrices: differences, so that nothing cancels. */

/* Vectors of entries, how many of them are made at a time, and entries of a row that are. */
typedef real lanes __attribute__((vector_size(WIDTH)));
enum { VECTORS = 4, ACROSS = VECTORS * WIDTH / sizeof(real), DEPTH = 128 };

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

/* Vectors and entries of weights that are looked at together, and columns that are summed by them. */
enum { LANES_OF = WIDTH / sizeof(real), LINED = 16, BLOCK = LINED * LANES_OF, COLUMNS_OF = 32 };

static real total(lanes x)
{
    for (long half = LANES_OF / 2; half; half /= 2)
        for (long i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

/* A block of weights; 0 if all of them are zero. */
static int weighs(const real *w, long apart, real *found, long count)
{
    int any = 0;
    if (apart == 1)
        for (long i = 0; i < count; i++)
            any |= (found[i] = w[i]) != 0;
    else
        for (long i = 0; i < count; i++)
            any |= (found[i] = w[i * apart]) != 0;
    return any;
}

/* out[j, l] = (or +=) the sum over i of w[j, i] (s a[i, l] + t c[j, l]), for m rows j, n rows i and k
   columns l. Blocks of i whose weights are all zero are passed over. */
static void weighted(const real *w, long wr, long wc, const real *a, long ar, long ac, real s,
                     const real *c, long cr, long cc, real t, real *out, long lead, int adding,
                     long m, long n, long k)
{
    lanes held[COLUMNS_OF * LINED], weights[LINED];
    real *packed = (real *)held, *weight = (real *)weights;
    for (long j = 0; j < m && !adding; j++)
        memset(out + j * lead, 0, k * sizeof(real));
    for (long l0 = 0; l0 < k; l0 += COLUMNS_OF)
        for (long i0 = 0; i0 < n; i0 += BLOCK) {
            long columns = smaller(COLUMNS_OF, k - l0), rows = smaller(BLOCK, n - i0);
            long full = rows / LANES_OF;
            for (long l = 0; l < columns; l++)
                for (long i = 0; i < rows; i++)
                    packed[l * BLOCK + i] = s * a[(i0 + i) * ar + (l0 + l) * ac];
            for (long j = 0; j < m; j++) {
                if (!weighs(w + j * wr + i0 * wc, wc, weight, rows))
                    continue;
                for (long l = 0; l < columns; l++) {
                    real shift = t * c[j * cr + (l0 + l) * cc], sum = 0;
                    lanes one = {0}, two = {0};
                    for (long v = 0; v + 1 < full; v += 2) {
                        one += weights[v] * (held[l * LINED + v] + shift);
                        two += weights[v + 1] * (held[l * LINED + v + 1] + shift);
                    }
                    if (full % 2)
                        one += weights[full - 1] * (held[l * LINED + full - 1] + shift);
                    for (long i = full * LANES_OF; i < rows; i++)
                        sum += weight[i] * (packed[l * BLOCK + i] + shift);
                    out[j * lead + l0 + l] += sum + total(one + two);
                }
            }
        }
}
