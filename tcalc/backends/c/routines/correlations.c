/* Sums over windows that overlap, read where they lie: nothing is copied, and what is loaded is used
   for several results. A window's entries lie at some places; it moves along a line of entries that
   are next to each other. */

/* A vector of entries that may begin anywhere; bits of one, all or none of an entry. */
typedef real loose __attribute__((vector_size(WIDTH), aligned(sizeof(real)), may_alias));
typedef long long bits __attribute__((vector_size(WIDTH)));
/* Most weights that are held, vectors of a line at a time, and entries of lines that stay in cache. */
enum { HELD = 2048, STRIPE = 4, NEAR = 2048 };

/* Where entries are, for `axes` extents and strides in pairs, as C counts them; how many there are. */
static long places(const long *window, long axes, long *at)
{
    long count = 1;
    at[0] = 0;
    for (long a = 0; a < axes; a++) {
        long n = window[2 * a], stride = window[2 * a + 1];
        for (long k = count - 1; k >= 0; k--)
            for (long i = n - 1; i >= 0; i--)
                at[k * n + i] = at[k] + i * stride;
        count *= n;
    }
    return count;
}

/* Vectors of one line or two: the sums over k of w_k x[at_k + j], for the second of w_(count + k). */
static inline __attribute__((always_inline)) void stripe(
    const real *x, const long *at, const real *w, long count, real *out, long lead, int vectors,
    int lines)
{
    loose s[STRIPE] = {{0}}, t[STRIPE] = {{0}};
    for (long k = 0; k < count; k++) {
        const loose *y = (const loose *)(x + at[k]);
        real c = w[k], d = lines > 1 ? w[count + k] : 0;
#pragma GCC unroll 4
        for (int u = 0; u < vectors; u++) {
            s[u] += c * y[u];
            if (lines > 1)
                t[u] += d * y[u];
        }
    }
    for (int u = 0; u < vectors; u++) {
        ((loose *)out)[u] = s[u];
        if (lines > 1)
            ((loose *)(out + lead))[u] = t[u];
    }
}

static inline __attribute__((always_inline)) void stripes(
    const real *x, const long *at, const real *w, long count, long left, real *out, long lead,
    int vectors)
{
    long l = 0;
    for (; l + 2 <= left; l += 2)
        stripe(x, at, w + l * count, count, out + l * lead, lead, vectors, 2);
    if (l < left)
        stripe(x, at, w + l * count, count, out + l * lead, lead, vectors, 1);
}

/* out[l lead + j] = sum_k w_lk x[at_k + j] for n entries j of `left` lines. The places of windows
   and those of weights are given by extents and strides. */
static void windows_over_few(
    const real *x, const long *window, const real *weights, const long *weighted, long axes,
    long left, long apart, real *out, long lead, long n)
{
    long at[HELD], from[HELD], j = 0, wide = STRIPE * LANES_OF;
    real w[HELD];
    long count = places(window, axes, at);
    places(weighted, axes, from);
    for (long l = 0; l < left; l++)
        for (long k = 0; k < count; k++)
            w[l * count + k] = weights[l * apart + from[k]];
    for (; j + wide <= n; j += wide)
        stripes(x + j, at, w, count, left, out + j, lead, STRIPE);
    if (j < n && n >= wide) /* the last ones once more */
        stripes(x + n - wide, at, w, count, left, out + n - wide, lead, STRIPE), j = n;
    for (; j + (long)LANES_OF <= n; j += LANES_OF)
        stripes(x + j, at, w, count, left, out + j, lead, 1);
    for (; j < n; j++)
        for (long l = 0; l < left; l++) {
            real s = 0;
            for (long k = 0; k < count; k++)
                s += w[l * count + k] * x[at[k] + j];
            out[l * lead + j] = s;
        }
}

/* Products of vectors at some places with one or two of another operand's, of entries in `mask`. */
static inline __attribute__((always_inline)) void meet(
    const real *a, const long *at, const real *b, long apart, loose *s, loose *t, int some,
    int lines, bits mask)
{
    loose v = (loose)((bits)*(const loose *)b & mask), z = v;
    if (lines > 1)
        z = (loose)((bits)*(const loose *)(b + apart) & mask);
#pragma GCC unroll 8
    for (int k = 0; k < some; k++) {
        loose u = (loose)((bits)*(const loose *)(a + at[k]) & mask);
        s[k] += u * v;
        if (lines > 1)
            t[k] += u * z;
    }
}

/* Inner products of one operand's lines or two's, `apart`, with those at some places. */
static inline __attribute__((always_inline)) void inner(
    const real *x, const long *at, long xr, const real *y, long yr, long apart, long rows, long n,
    real *out, long lead, int some, int lines)
{
    loose s[8] = {{0}}, t[8] = {{0}};
    real c[8] = {0}, d[8] = {0};
    bits every, last = {0};
    long rest = n % (long)LANES_OF * (long)sizeof(real);
    memset(&every, -1, sizeof every);
    memset((char *)&last + sizeof last - rest, -1, rest);
    for (long i = 0; i < rows; i++) {
        const real *a = x + i * xr, *b = y + i * yr;
        for (long j = 0; j + (long)LANES_OF <= n; j += LANES_OF)
            meet(a + j, at, b + j, apart, s, t, some, lines, every);
        if (n >= (long)LANES_OF && rest)
            meet(a + n - LANES_OF, at, b + n - LANES_OF, apart, s, t, some, lines, last);
        for (long j = 0; j < n && n < (long)LANES_OF; j++)
            for (int k = 0; k < some; k++) {
                c[k] += a[at[k] + j] * b[j];
                if (lines > 1)
                    d[k] += a[at[k] + j] * b[apart + j];
            }
    }
    for (int k = 0; k < some; k++) {
        out[k] += total((lanes)s[k]) + c[k];
        if (lines > 1)
            out[lead + k] += total((lanes)t[k]) + d[k];
    }
}

/* out[l lead + k] += sum_ij x[at_k + i xr + j] y[l apart + i yr + j] for `left` operands y, where i
   counts rows and j the n entries of each. */
static void windows_over_many(
    const real *x, const long *window, long axes, long xr, const real *y, long yr, long left,
    long apart, long rows, long n, real *out, long lead)
{
    long at[HELD], count = places(window, axes, at), wide = smaller(n, NEAR), high = NEAR / wide;
    for (long i = 0; i < rows; i += high)
        for (long j = 0; j < n; j += wide) {
            long r = smaller(high, rows - i), m = smaller(wide, n - j), l = 0;
            const real *a = x + i * xr + j, *b = y + i * yr + j;
            for (; l + 2 <= left; l += 2) {
                const real *c = b + l * apart;
                real *to = out + l * lead;
                long k = 0;
                for (; k + 4 <= count; k += 4)
                    inner(a, at + k, xr, c, yr, apart, r, m, to + k, lead, 4, 2);
                for (; k < count; k++)
                    inner(a, at + k, xr, c, yr, apart, r, m, to + k, lead, 1, 2);
            }
            for (; l < left; l++) {
                const real *c = b + l * apart;
                real *to = out + l * lead;
                long k = 0;
                for (; k + 8 <= count; k += 8)
                    inner(a, at + k, xr, c, yr, 0, r, m, to + k, 0, 8, 1);
                for (; k + 3 <= count; k += 3)
                    inner(a, at + k, xr, c, yr, 0, r, m, to + k, 0, 3, 1);
                for (; k < count; k++)
                    inner(a, at + k, xr, c, yr, 0, r, m, to + k, 0, 1, 1);
            }
        }
}
