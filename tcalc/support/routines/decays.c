/* Functions made of exp(-|x|), of which an entry takes one for all of them. */

static INLINED real quick_sigmoid(real x)
{
    real e = decay(x), share = 1 / (1 + e);
    return where_negative(x, e * share, share);
}

/* log(1 + exp(x)) */
static INLINED real quick_softplus(real x)
{
    return where_negative(x, 0, x) + log1p_of_part(decay(x));
}

/* log(exp(a) + exp(b)) */
static INLINED real quick_logaddexp(real a, real b)
{
    real high = a > b ? a : b;
    return a == b ? a + (real)0.69314718055994530942 : high + log1p_of_part(decay(a - b));
}
