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
