/* Is a product with a sum one instruction, for numbers of double precision? */
#if (defined(__FMA__) || defined(__ARM_FEATURE_FMA)) && !defined(SINGLE)
#define FUSED 1
#else
#define FUSED 0
#endif

/* tanh, of which loops have vectors. */
static INLINED real vector_tanh(real a)
{
#if FUSED
    return quick_tanh(a);
#else
    return tanh(a);
#endif
}

/* 1 / cosh, of which loops have vectors. */
static INLINED real vector_sech(real a)
{
#if FUSED
    return quick_sech(a);
#else
    return 1 / cosh(a);
#endif
}

/* 1 / (1 + exp(-a)), of which loops have vectors. */
static INLINED real vector_sigmoid(real a)
{
#if FUSED
    return quick_sigmoid(a);
#else
    return sigmoid(a);
#endif
}

/* log(1 + exp(a)), of which loops have vectors. */
static INLINED real vector_softplus(real a)
{
#if FUSED
    return quick_softplus(a);
#else
    return softplus(a);
#endif
}

/* log(exp(a) + exp(b)), of which loops have vectors. */
static INLINED real vector_logaddexp(real a, real b)
{
#if FUSED
    return quick_logaddexp(a, b);
#else
    return logaddexp(a, b);
#endif
}
