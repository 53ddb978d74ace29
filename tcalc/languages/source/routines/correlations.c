/* How many numbers are worked on at once: those of a vector register. */
#ifdef __AVX512F__
#define LANES ((ptrdiff_t)(64 / sizeof(real)))
#else
#define LANES ((ptrdiff_t)(32 / sizeof(real)))
#endif

/* Numbers of a register of the length that all processors with vectors of sums have. */
#define SHORT_LANES ((ptrdiff_t)(32 / sizeof(real)))

/* Terms of a sum that are listed at a time. */
#define LISTED 256

/* Most axes of windows that are kept, or summed. */
#define AXES 8

/* How many entries some axes have. */
static inline ptrdiff_t entries(ptrdiff_t axes, const ptrdiff_t axis[][3])
{
    ptrdiff_t count = 1;
    for (ptrdiff_t k = 0; k < axes; k++)
        count *= axis[k][0];
    return count;
}

/* A step to the next entry of some axes, row by row: its places in two arrays and its indices, which
   `at` has behind them. An axis is an extent, and how far entries are apart in each array. */
static inline void to_next(ptrdiff_t axes, const ptrdiff_t axis[][3], ptrdiff_t *at)
{
    for (ptrdiff_t k = axes; k-- > 0;) {
        at[0] += axis[k][1];
        at[1] += axis[k][2];
        if (++at[2 + k] < axis[k][0])
            return;
        at[0] -= axis[k][0] * axis[k][1];
        at[1] -= axis[k][0] * axis[k][2];
        at[2 + k] = 0;
    }
}

/* Where the next entries of some axes are in both arrays. */
static void list_places(ptrdiff_t axes, const ptrdiff_t axis[][3], ptrdiff_t count, ptrdiff_t *next,
                        ptrdiff_t *at, ptrdiff_t *of)
{
    for (ptrdiff_t k = 0; k < count; k++, to_next(axes, axis, next)) {
        at[k] = next[0];
        of[k] = next[1];
    }
}

/* c_j = s_j, or c_j + s_j where it is not the first part of a sum, but for entries in a gap, which
   have it already. */
static INLINED void put(int first, ptrdiff_t wide, ptrdiff_t gap, const real *s, real *c)
{
    if (first)
        for (ptrdiff_t j = 0; j < wide; j++)
            c[j] = s[j];
    else
        for (ptrdiff_t j = 0; j < wide; j++)
            c[j] = j < gap ? c[j] : c[j] + s[j];
}

/* c_j = sum_k v_k a_(at_k + j) and d_j = sum_k w_k b_(at_k + j) for so few j that the sums stay in
   registers: two loops, of which compilers do not make one over k. */
static INLINED void add_blocks(int first, ptrdiff_t wide, ptrdiff_t count, const ptrdiff_t *at,
                               const real *a, const real *v, real *c, ptrdiff_t c_gap,
                               const real *b, const real *w, real *d, ptrdiff_t d_gap)
{
    real s[4 * LANES] = {0}, t[4 * LANES] = {0};
    for (ptrdiff_t k = 0; k < count; k++) {
#pragma omp simd simdlen(LANES)
        for (ptrdiff_t j = 0; j < wide; j++)
            s[j] = add_product(v[k], a[at[k] + j], s[j]);
#pragma omp simd simdlen(LANES)
        for (ptrdiff_t j = 0; j < wide; j++)
            t[j] = add_product(w[k], b[at[k] + j], t[j]);
    }
    put(first, wide, c_gap, s, c);
    put(first, wide, d_gap, t, d);
}

/* c_j = sum_k w_k a_(at_k + j) by two blocks at a time, of which the last ones end with the line. */
static INLINED void add_pairs(int first, ptrdiff_t wide, ptrdiff_t n, ptrdiff_t count,
                              const ptrdiff_t *at, const real *a, const real *w, real *c)
{
    for (ptrdiff_t j = 0; j < n; j += 2 * wide) {
        ptrdiff_t p = j < n - wide ? j : n - wide, q = j + wide < n - wide ? j + wide : n - wide;
        add_blocks(first, wide, count, at, a + p, w, c + p, j - p, a + q, w, c + q, j + wide - q);
    }
}

/* c_j = sum_k w_k a_(at_k + j) for n entries of a line. */
static void add_line(int first, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t *at, const real *a,
                     const real *w, real *c)
{
    if (n >= 4 * LANES)
        add_pairs(first, 4 * LANES, n, count, at, a, w, c);
    else if (n >= 2 * LANES)
        add_pairs(first, 2 * LANES, n, count, at, a, w, c);
    else if (n >= LANES)
        add_pairs(first, LANES, n, count, at, a, w, c);
    else
        for (ptrdiff_t j = 0; j < n; j++) {
            real sum = first ? 0 : c[j];
            for (ptrdiff_t k = 0; k < count; k++)
                sum = add_product(w[k], a[at[k] + j], sum);
            c[j] = sum;
        }
}

/* `add_line` for two lines, of which long ones read each entry once. */
static void add_two_lines(int first, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t *at,
                          const real *a, const real *v, real *c, const real *w, real *d)
{
    const ptrdiff_t wide = 4 * LANES;
    if (n < wide) {
        add_line(first, n, count, at, a, v, c);
        add_line(first, n, count, at, a, w, d);
        return;
    }
    for (ptrdiff_t j = 0; j < n; j += wide) {
        ptrdiff_t p = j < n - wide ? j : n - wide;
        add_blocks(first, 4 * LANES, count, at, a + p, v, c + p, j - p, a + p, w, d + p, j - p);
    }
}

/* `correlate` along lines of the result, for sums of few terms. */
static void windows_over_few(ptrdiff_t lines, ptrdiff_t apart, ptrdiff_t lead, ptrdiff_t kept,
                             const ptrdiff_t out[][3], ptrdiff_t summed, const ptrdiff_t in[][3],
                             const real *a, const real *b, real *c)
{
    const ptrdiff_t size = entries(kept, out), terms = entries(summed, in), n = out[kept - 1][0];
    ptrdiff_t at[LISTED], of[LISTED], term[AXES + 2] = {0}, count;
    real v[LISTED], w[LISTED];
    if (!terms)
        memset(c, 0, (size_t)(lines * size) * sizeof(real));
    for (ptrdiff_t start = 0; start < terms; start += count) {
        count = terms - start < LISTED ? terms - start : LISTED;
        list_places(summed, in, count, term, at, of);
        for (ptrdiff_t l = 0; l < lines; l += 2) {
            const int two = l + 1 < lines;
            ptrdiff_t row[AXES + 2] = {0};
            for (ptrdiff_t k = 0; k < count; k++) {
                v[k] = b[l * apart + of[k]];
                w[k] = b[(l + two) * apart + of[k]];
            }
            for (ptrdiff_t i = 0; i < size; i += n, to_next(kept - 1, out, row)) {
                const real *x = a + row[0];
                real *y = c + l * lead + row[1];
                if (two)
                    add_two_lines(!start, n, count, at, x, v, y, w, y + lead);
                else
                    add_line(!start, n, count, at, x, v, y);
            }
        }
    }
}

/* sums_k = sum_ij a_(place_k + at_i + j) b_(of_i + j) for `some` places k, n entries j of rows i; then
   the same of a second line of b, so far apart, if there are two. */
static INLINED void inner_products(ptrdiff_t wide, int some, int lines, ptrdiff_t n, ptrdiff_t rows,
                                   const ptrdiff_t *at, const ptrdiff_t *of, const real *a,
                                   const ptrdiff_t *place, const real *b, ptrdiff_t apart, real *sums)
{
    real s[12][LANES] = {{0}}, rest[12] = {0};
    for (ptrdiff_t i = 0; i < rows; i++) {
        const real *x = a + at[i], *y = b + of[i];
        ptrdiff_t j = 0;
        for (; j + wide <= n; j += wide)
#pragma GCC unroll 9
            for (int k = 0; k < some; k++) {
#pragma omp simd simdlen(LANES)
                for (ptrdiff_t u = 0; u < wide; u++)
                    s[k][u] = add_product(x[place[k] + j + u], y[j + u], s[k][u]);
                if (lines > 1)
#pragma omp simd simdlen(LANES)
                    for (ptrdiff_t u = 0; u < wide; u++)
                        s[some + k][u]
                            = add_product(x[place[k] + j + u], y[apart + j + u], s[some + k][u]);
            }
        for (; j < n; j++)
#pragma GCC unroll 9
            for (int k = 0; k < some; k++) {
                rest[k] = add_product(x[place[k] + j], y[j], rest[k]);
                if (lines > 1)
                    rest[some + k] = add_product(x[place[k] + j], y[apart + j], rest[some + k]);
            }
    }
#pragma GCC unroll 12
    for (int k = 0; k < lines * some; k++) {
        real sum = rest[k];
#pragma omp simd reduction(+: sum)
        for (ptrdiff_t u = 0; u < wide; u++)
            sum += s[k][u];
        sums[k] = sum;
    }
}

/* `correlate` along lines that are summed, for few results: several of them at a time, and by parts
   that stay in cache. */
static void windows_over_many(ptrdiff_t lines, ptrdiff_t apart, ptrdiff_t lead, ptrdiff_t kept,
                              const ptrdiff_t out[][3], ptrdiff_t summed, const ptrdiff_t in[][3],
                              const real *a, const real *b, real *c)
{
    enum { NEAR = 2048, FEW = 3 };
    const ptrdiff_t size = entries(kept, out), rows = entries(summed - 1, in), n = in[summed - 1][0];
    const ptrdiff_t high = n * LISTED < NEAR ? LISTED : n < NEAR ? NEAR / n : 1;
    const ptrdiff_t most = lines > 1 ? 6 : 9;
    ptrdiff_t at[LISTED], of[LISTED], row[AXES + 2] = {0}, count;
    memset(c, 0, (size_t)(lines * size) * sizeof(real));
    for (ptrdiff_t start = 0; start < rows; start += count) {
        count = rows - start < high ? rows - start : high;
        list_places(summed - 1, in, count, row, at, of);
        for (ptrdiff_t j = 0; j < n; j += NEAR) {
            const ptrdiff_t m = n - j < NEAR ? n - j : NEAR;
            ptrdiff_t entry[AXES + 2] = {0}, own;
            for (ptrdiff_t k = 0; k < size; k += own) {
                const ptrdiff_t some = size - k <= FEW ? FEW : most;
                ptrdiff_t place[9] = {0}, to[9];
                own = size - k < some ? size - k : some;
                list_places(kept, out, own, entry, place, to);
                for (ptrdiff_t l = 0; l < lines; l += 2) {
                    const int two = l + 1 < lines;
                    const real *x = a + j, *y = b + l * apart + j;
                    real sums[12];
                    if (two && some == FEW)
                        inner_products(SHORT_LANES, 3, 2, m, count, at, of, x, place, y, apart, sums);
                    else if (two)
                        inner_products(SHORT_LANES, 6, 2, m, count, at, of, x, place, y, apart, sums);
                    else if (some == FEW)
                        inner_products(SHORT_LANES, 3, 1, m, count, at, of, x, place, y, 0, sums);
                    else if (m < 16 * LANES)
                        inner_products(SHORT_LANES, 9, 1, m, count, at, of, x, place, y, 0, sums);
                    else
                        inner_products(LANES, 9, 1, m, count, at, of, x, place, y, 0, sums);
                    for (ptrdiff_t i = 0; i < own; i++) {
                        c[l * lead + to[i]] += sums[i];
                        if (two)
                            c[(l + 1) * lead + to[i]] += sums[some + i];
                    }
                }
            }
        }
    }
}

/* c_li = sum_j a_ij b_lj for windows i of a, which overlap and are read where they lie. Axes of i are
   rows of `out`, those of j rows of `in`: an extent, and how far entries are apart in a, and in c or
   in b. Lines l are `apart` in b, and `lead` in c, of which they fill all. Last entries of i follow on
   each other in a and c, or those of j in a and b. */
static void correlate(ptrdiff_t lines, ptrdiff_t apart, ptrdiff_t lead, ptrdiff_t kept,
                      const ptrdiff_t out[][3], ptrdiff_t summed, const ptrdiff_t in[][3],
                      const real *a, const real *b, real *c)
{
    const ptrdiff_t *to = out[kept - 1], *along = in[summed - 1];
    const int one = to[1] == 1 && to[2] == 1, other = along[1] == 1 && along[2] == 1;
    if (other && (!one || (along[0] >= SHORT_LANES && along[0] > to[0])))
        windows_over_many(lines, apart, lead, kept, out, summed, in, a, b, c);
    else
        windows_over_few(lines, apart, lead, kept, out, summed, in, a, b, c);
}

/* c = a a' for windows of a, which overlap, and of which `depth` entries are copied at a time. Axes are
   those of `correlate`. */
static void windows_square(ptrdiff_t kept, const ptrdiff_t out[][3], ptrdiff_t summed,
                           const ptrdiff_t in[][3], const real *a, ptrdiff_t depth, real *part,
                           real *c)
{
    const ptrdiff_t m = entries(kept, out), rows = entries(summed - 1, in), n = in[summed - 1][0];
    const ptrdiff_t apart = in[summed - 1][1];
    ptrdiff_t row[AXES + 2] = {0}, filled = 0;
    real first = 0;
    memset(c, 0, (size_t)(m * m) * sizeof(real));
    for (ptrdiff_t i = 0; i < rows; i++, to_next(summed - 1, in, row))
        for (ptrdiff_t j = 0, count; j < n; j += count) {
            ptrdiff_t window[AXES + 2] = {0};
            count = n - j < depth - filled ? n - j : depth - filled;
            for (ptrdiff_t k = 0; k < m; k++, to_next(kept, out, window)) {
                const real *x = a + row[0] + window[0] + j * apart;
                for (ptrdiff_t u = 0; u < count; u++)
                    part[k * depth + filled + u] = x[u * apart];
            }
            filled += count;
            if (filled < depth && (i + 1 < rows || j + count < n))
                continue;
            multiply_half(m, filled, 1, part, depth, 1, part, 1, depth, first, c, m, 0);
            first = 1;
            filled = 0;
        }
    mirror(m, c, m, 1, c, m, 1);
}
