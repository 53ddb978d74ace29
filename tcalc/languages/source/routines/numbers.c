/* For functions that are fast where their numbers are known. */
#ifdef __GNUC__
#define INLINED inline __attribute__((always_inline))
#else
#define INLINED inline
#endif

/* a b + c, rounded once where that is as fast. */
static INLINED real add_product(real a, real b, real c)
{
#if defined(SINGLE) && defined(FP_FAST_FMAF)
    return fmaf(a, b, c);
#elif !defined(SINGLE) && defined(FP_FAST_FMA)
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

#define REAL_EPSILON (sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON)

static inline ptrdiff_t index_abs(ptrdiff_t a)
{
    return a < 0 ? -a : a;
}

static inline ptrdiff_t index_max(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

static inline ptrdiff_t index_min(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

/* An index into n entries, of which negative ones count from the end. */
static inline ptrdiff_t index_in(ptrdiff_t i, ptrdiff_t n)
{
    return i < 0 ? i + n : i;
}

/* The remainder that has the divisor's sign. */
static inline ptrdiff_t index_mod(ptrdiff_t a, ptrdiff_t b)
{
    ptrdiff_t r = a % b;
    return r && (r < 0) != (b < 0) ? r + b : r;
}

static inline ptrdiff_t index_sign(ptrdiff_t a)
{
    return (a > 0) - (a < 0);
}

static inline real maximum(real a, real b)
{
    return a > b || isnan(a) ? a : b;
}

static inline real minimum(real a, real b)
{
    return a < b || isnan(a) ? a : b;
}

static inline real mod(real a, real b)
{
    real r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r == 0 ? copysign((real)0, b) : r;
}

static inline real sign(real a)
{
    return a > 0 ? 1 : a < 0 ? -1 : a;
}

static inline real reciprocal0(real a)
{
    return a == 0 ? 0 : 1 / a;
}

static inline real relu(real a)
{
    return a > 0 || isnan(a) ? a : 0;
}

static inline real sech(real a)
{
    return 1 / cosh(a);
}

static inline real sigmoid(real a)
{
    return 1 / (1 + exp(-a));
}

/* log(1 + exp(a)) */
static inline real softplus(real a)
{
    return (a > 0 || isnan(a) ? a : 0) + log1p(exp(-fabs(a)));
}

static inline real logcosh(real a)
{
    real s = sinh(a / 2);
    return fabs(a) < 1 ? log1p(2 * s * s) : fabs(a) + log1p(exp(-2 * fabs(a))) - 0.69314718055994531;
}

/* log(exp(a) + exp(b)) */
static inline real logaddexp(real a, real b)
{
    real high = a > b ? a : b;
    return a == b ? a + 0.69314718055994531 : high + log1p(exp(-fabs(a - b)));
}

static inline real xlogy(real a, real b)
{
    return a == 0 && !isnan(b) ? 0 : a * log(b);
}

static inline real logit(real a)
{
    return log(a / (1 - a));
}
