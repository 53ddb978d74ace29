/* Functions of rows of entries, and (`_across`) of columns next to each other, that every generated
   program has. The largest and the smallest entry stand before them. */

static inline void shares(const real *x, long n, real top, real *out) {
    real count = 0;
    #pragma omp simd reduction(+: count)
    for (long i = 0; i < n; i++)
        count += x[i] == top;
    const real share = 1 / count;
    #pragma omp simd
    for (long i = 0; i < n; i++)
        out[i] = (x[i] == top) * share;
}

/* The same of m columns next to each other of entries s apart, each a row of entries t apart,
   rows u apart. */
static inline void shares_across(
    const real *x, real *out, long n, long s, long t, long u, long m,
    void extreme(const real *, long, long, long, real *)) {
    real top[COLUMNS], count[COLUMNS] = {0};
    extreme(x, n, s, m, top);
    for (long i = 0; i < n; i++)
        #pragma omp simd
        for (long j = 0; j < m; j++)
            count[j] += x[i * s + j] == top[j];
    #pragma omp simd
    for (long j = 0; j < m; j++)
        count[j] = 1 / count[j];
    for (long j = 0; j < m; j++)
        for (long i = 0; i < n; i++)
            out[j * u + i * t] = (x[i * s + j] == top[j]) * count[j];
}

/* The norm of entries s apart, over a power of two near the largest: squares stay in range. */
static real _scaled_norm2(const real *x, long n, long s) {
    real top = 0, sum = 0;
    int power, nan = 0;
    for (long i = 0; i < n; i++) {
        top = F(fabs)(x[i * s]) > top ? F(fabs)(x[i * s]) : top;
        nan |= x[i * s] != x[i * s];
    }
    if (nan || !isfinite(top) || top == 0)
        return nan ? (real)NAN : top;
    F(frexp)(top, &power);
    for (long i = 0; i < n; i++) {
        real part = F(ldexp)(x[i * s], -power);
        sum += part * part;
    }
    return F(ldexp)(F(sqrt)(sum), power);
}

/* Below SMALLEST, entries whose squares underflow have more than rounding's part of the sum. */
#define SMALLEST (sizeof(real) == 8 ? 1e-137 : 1e-11)
static inline real _norm2(const real *x, long n) {
    wide sum = 0;
    #pragma omp simd reduction(+: sum)
    for (long i = 0; i < n; i++)
        sum += x[i] * x[i];
    real found = (real)sqrt(sum);
    return found > SMALLEST && isfinite(found) ? found : _scaled_norm2(x, n, 1);
}

static inline void _norm2_across(const real *x, long n, long s, long m, real *out) {
    for (long j = 0; j < m; j++)
        out[j] = 0;
    for (long i = 0; i < n; i++)
        #pragma omp simd
        for (long j = 0; j < m; j++)
            out[j] += x[i * s + j] * x[i * s + j];
    int all = 1;
    #pragma omp simd reduction(&: all)
    for (long j = 0; j < m; j++) {
        out[j] = F(sqrt)(out[j]);
        all &= (out[j] > (real)SMALLEST) & (out[j] < (real)INFINITY);
    }
    for (long j = 0; !all && j < m; j++)
        if (!(out[j] > SMALLEST && isfinite(out[j])))
            out[j] = _scaled_norm2(x + j, n, s);
}

static inline real _prod(const real *x, long n) {
    real found = 1;
    #pragma omp simd reduction(*: found)
    for (long i = 0; i < n; i++)
        found *= x[i];
    return found;
}

static inline void _prod_across(const real *x, long n, long s, long m, real *out) {
    for (long j = 0; j < m; j++)
        out[j] = 1;
    for (long i = 0; i < n; i++)
        #pragma omp simd
        for (long j = 0; j < m; j++)
            out[j] *= x[i * s + j];
}

/* Of entries s apart, as entries t apart. */
static inline void _sums_up_to(const real *x, long s, real *out, long t, long n) {
    real sum = 0;
    for (long i = 0; i < n; i++)
        out[i * t] = sum += x[i * s];
}

static inline void _sums_from(const real *x, long s, real *out, long t, long n) {
    real sum = 0;
    for (long i = n - 1; i >= 0; i--)
        out[i * t] = sum += x[i * s];
}

/* Equal entries in the order in which they come, NaN behind all others. */
static inline void _places_in_order(const real *x, long s, real *out, long t, long n) {
    for (long i = 0; i < n; i++) {
        long k = i;
        for (; k > 0; k--) {
            real before = x[(long)out[(k - 1) * t] * s], new = x[i * s];
            if (!(before > new) && !(before != before && new == new))
                break;
            out[k * t] = out[(k - 1) * t];
        }
        out[k * t] = (real)i;
    }
}

static inline real _logsumexp(const real *x, long n) {
    const real top = _max(x, n);
    wide sum = 0;
    if (!isfinite(top))
        return top;
    #pragma omp simd reduction(+: sum)
    for (long i = 0; i < n; i++)
        sum += decay(x[i] - top);
    return top + (real)log(sum);
}

/* Where a weight is 0, its exponent counts for nothing. */
static inline real _weighted_logsumexp(const real *x, long s, const real *b, long t, long n) {
    real top = -INFINITY;
    wide sum = 0;
    for (long i = 0; i < n; i++)
        if (b[i * t] != 0 && !(x[i * s] <= top))
            top = x[i * s];
    if (!isfinite(top))
        top = 0;
    for (long i = 0; i < n; i++)
        sum += b[i * t] != 0 ? b[i * t] * quick_exp(x[i * s] - top) : b[i * t];
    return top + (real)log(sum);
}

static inline void _logsumexp_across(const real *x, long n, long s, long m, real *out) {
    real sum[COLUMNS] = {0};
    _max_across(x, n, s, m, out);
    for (long i = 0; i < n; i++)
        #pragma omp simd
        for (long j = 0; j < m; j++)
            sum[j] += decay(x[i * s + j] - out[j]);
    #pragma omp simd
    for (long j = 0; j < m; j++)
        out[j] = isfinite(out[j]) ? out[j] + F(log)(sum[j]) : out[j];
}
