/* Products of small matrices and vectors, for which calling gemv takes as long as reading them.

   `real`, integers of its size (`same`), the WIDTH of vectors and EACH, which writes a word for every
   lane, come from a prelude. Vectors are read past the end of short rows where the matrix itself goes
   on. */

/* Entries of a row that one instruction takes, or a few of them. */
typedef real lanes __attribute__((vector_size(WIDTH), aligned(sizeof(real)), may_alias));
typedef same masks __attribute__((vector_size(WIDTH), aligned(sizeof(real)), may_alias));
enum { LANE = WIDTH / sizeof(real) };
/* Vectors of sums that are held, entries of a row that are summed at a time, and those of a matrix
   up to which all this is faster than gemv. */
enum { SUMS = 4, STRIP = SUMS * LANE, LIGHT = 30000 };

/* How many of n rows, of which k entries are read, have a whole vector before the last one's end. */
static long with_lanes(long n, long apart, long k)
{
    return k >= LANE ? n : larger(0, n - (LANE - k + apart - 1) / apart);
}

/* t = sum over n rows of x times the row, `vectors` of it, the last of which starts at `last`. */
static INLINED void strip(int vectors, long last, const real *a, long apart, const real *x,
                          long step, long n, real *t)
{
    lanes s[SUMS] = {{0}};
    const int rows = SUMS / vectors;
    long i = 0;
    for (; i + rows <= n; i += rows, a += rows * apart)
        for (int r = 0; r < rows; r++) {
            const real *row = a + r * apart, c = x[(i + r) * step];
            for (int v = 0; v < vectors; v++)
                s[r * vectors + v] += c * *(const lanes *)(row + (v < vectors - 1 ? v * LANE : last));
        }
    for (; i < n; i++, a += apart)
        for (int v = 0; v < vectors; v++)
            s[v] += x[i * step] * *(const lanes *)(a + (v < vectors - 1 ? v * LANE : last));
    for (int r = 1; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            s[v] += s[r * vectors + v];
    for (int v = 0; v < vectors; v++)
        memcpy(t + (v < vectors - 1 ? v * LANE : last), s + v, sizeof *s);
}

/* out = alpha sum over n rows of x times the row, of which k entries; out is added to if `adding`. */
static void sum_of_rows(real alpha, const real *a, long apart, const real *x, long step, int adding,
                        real *out, long n, long k)
{
    real t[STRIP];
    for (long j = 0, done; j < k; j += done) {
        const real *b = a + j;
        done = smaller(k - j, STRIP);
        long last = larger(done - LANE, 0), whole = with_lanes(n, apart, done);
        switch ((done + LANE - 1) / LANE) {
        case 1: strip(1, last, b, apart, x, step, whole, t); break;
        case 2: strip(2, last, b, apart, x, step, whole, t); break;
        case 3: strip(3, last, b, apart, x, step, whole, t); break;
        default: strip(4, last, b, apart, x, step, whole, t);
        }
        for (long i = whole; i < n; i++)
            for (long q = 0; q < done; q++)
                t[q] += x[i * step] * b[i * apart + q];
        for (long q = 0; q < done; q++)
            out[j + q] = alpha * t[q] + (adding ? out[j + q] : 0);
    }
}

/* out = a x, of which m rows, for a with columns next to each other, `apart` from one to the next. */
static void by_columns(const real *a, long apart, const real *x, real *out, long m, long k)
{
    sum_of_rows(1, a, apart, x, 1, 0, out, k, m);
}

/* Sums of the lanes of each of LANE vectors, which are lost: neighbours are added in turn. */
static INLINED lanes sums_of_lanes(lanes *s)
{
#if defined(__clang__)
    lanes found;
    for (int r = 0; r < LANE; r++) {
        real sum = 0;
        for (int q = 0; q < LANE; q++)
            sum += s[r][q];
        found[r] = sum;
    }
    return found;
#else
#define EVEN(l, w) ((l) & (w) ? LANE + (l) - (w) : (l))
#define ODD(l, w) ((l) & (w) ? LANE + (l) : (l) + (w))
#define FOLDED(w)                                                                                  \
    for (int r = 0; r < LANE / (2 * (w)); r++)                                                     \
        s[r] = __builtin_shuffle(s[2 * r], s[2 * r + 1], (masks){EACH(EVEN, w)}) +                  \
               __builtin_shuffle(s[2 * r], s[2 * r + 1], (masks){EACH(ODD, w)});
    FOLDED(1)
    FOLDED(2)
    FOLDED(4)
    if (LANE > 8)
        FOLDED(LANE / 2)
    return s[0];
#endif
}

/* out[i] += alpha times row i of so many, of which k contiguous entries, times x. */
static INLINED void few_rows_times(int rows, real alpha, const real *a, long apart, const real *x,
                                   real *out, long step, long k)
{
    lanes s[2 * SUMS] = {{0}};
    const int each = 2 * SUMS / rows;
    long p = 0;
    for (; p + each * LANE <= k; p += each * LANE)
        for (int v = 0; v < each; v++)
            for (int r = 0; r < rows; r++)
                s[r * each + v] += *(const lanes *)(x + p + v * LANE) *
                                   *(const lanes *)(a + r * apart + p + v * LANE);
    for (; p + LANE <= k; p += LANE)
        for (int r = 0; r < rows; r++)
            s[r * each] += *(const lanes *)(x + p) * *(const lanes *)(a + r * apart + p);
    for (int r = 0; r < rows; r++) {
        real sum = 0;
        for (int v = 1; v < each; v++)
            s[r * each] += s[r * each + v];
        for (int q = 0; q < LANE; q++)
            sum += s[r * each][q];
        for (long q = p; q < k; q++)
            sum += a[r * apart + q] * x[q];
        out[r * step] += alpha * sum;
    }
}

/* out[i] += alpha times row i of a, of which k contiguous entries, times x. */
static void rows_times(real alpha, const real *a, long apart, const real *x, real *out, long step,
                       long m, long k)
{
    /* The last vector of a row overlaps the one before it, and so its x begins with zeros; what a
       short row's vector has beyond the row is cut off, for it may be nan. */
    long whole = k / LANE, rest = k % LANE, i = 0;
    lanes tail = {0};
    masks mask = {0};
    for (long q = 0; q < rest; q++)
        tail[(whole ? LANE - rest : 0) + q] = x[whole * LANE + q];
    for (long q = 0; q < LANE; q++)
        mask[q] = -(whole || q < k);
    for (long safe = with_lanes(m, apart, k); i + LANE <= safe; i += LANE) {
        const real *b = a + i * apart;
        lanes s[LANE] = {{0}};
        if (rest)
            for (int r = 0; r < LANE; r++)
                s[r] = tail * (lanes)(mask & *(const masks *)(b + r * apart + (whole ? k - LANE : 0)));
        for (long v = 0; v < whole; v++)
            for (int r = 0; r < LANE; r++)
                s[r] += *(const lanes *)(x + v * LANE) * *(const lanes *)(b + r * apart + v * LANE);
        lanes found = alpha * sums_of_lanes(s);
        for (int r = 0; r < LANE; r++)
            out[(i + r) * step] += found[r];
    }
    for (; i + 4 <= m; i += 4)
        few_rows_times(4, alpha, a + i * apart, apart, x, out + i * step, step, k);
    for (; i < m; i++)
        few_rows_times(1, alpha, a + i * apart, apart, x, out + i * step, step, k);
}

/* out += alpha a x, of which m rows, for small a; 1 if its entries do not lie as this needs. */
static int small_times(real alpha, const real *a, long row, long column, const real *x, long step,
                       real *out, long to, long m, long k)
{
    if ((double)m * k > LIGHT)
        return 1;
    if (row == 1 && column > 0 && to == 1)
        sum_of_rows(alpha, a, column, x, step, 1, out, k, m);
    else if (column == 1 && row > 0 && step == 1)
        rows_times(alpha, a, row, x, out, to, m, k);
    else
        return 1;
    return 0;
}
