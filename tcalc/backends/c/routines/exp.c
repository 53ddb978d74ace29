/* exp(x) as arithmetic alone, in either precision: C's library takes many times as long for a vector
   with a number of which the exponential is 0, such as masks leave behind. Narrower registers have
   more to do for powers of two, and keep the library's. */

#if defined(__AVX512DQ__) && defined(__FMA__)
#define QUICK_EXP
#endif

#if defined(QUICK_EXP) && defined(EXPONENTIALS)
static INLINED double quick_exp(double x)
{
    x = x < -753.4 ? -753.4 : x;
    x = x > 710 ? 710 : x;
    Reduced part = reduced(x);
    /* 2^k as a product, of which neither factor leaves the range of normal numbers. */
    double scale = x < 0 ? 0x1p-64 : 2;
    double power = number_of_bits(((bits_of(part.whole) + 2 * 1023) << 52) - bits_of(scale));
    return fma(power, part.more, power) * scale;
}
#elif defined(QUICK_EXP)
static INLINED float float_of_bits(int bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static INLINED int bits_of_float(float x)
{
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* As in double precision; the error of the polynomial is below 2^-28. */
static INLINED float quick_exp(float x)
{
    const float rounder = 0x1.8p23f;
    x = x < -110 ? -110 : x;
    x = x > 89 ? 89 : x;
    float t = fmaf(x, 0x1.715476p+0f, rounder), k = t - rounder;
    float r = fmaf(k, 0x1.05c61p-29f, fmaf(k, -0x1.62e43p-1f, x));
    float q = fmaf(0x1.6a1a6ep-10f, r, 0x1.123fc6p-7f);
    q = fmaf(fmaf(fmaf(q, r, 0x1.555916p-5f), r, 0x1.55548ap-3f), r, 0x1.fffffcp-2f);
    float more = fmaf(r * r, q, r), scale = x < 0 ? 0x1p-32f : 2;
    float power = float_of_bits((int)(((unsigned)bits_of_float(t) + 2 * 127) << 23)
                                - bits_of_float(scale));
    return fmaf(power, more, power) * scale;
}
#else
static INLINED real quick_exp(real x) { return F(exp)(x); }
#endif
