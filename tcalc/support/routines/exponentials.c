/* exp(-|x|), 1 - exp(-|x|) and log1p of such a number in double precision, as arithmetic alone.

   Loops inline them, so that compilers make vectors of them, and one exponential of all functions
   of an entry that are made of it. No branch stands in them, nor two that ask the same: compilers
   would do all that is between them twice. Where a product and a sum are not one instruction, C's
   library is faster. */

static INLINED double number_of_bits(long long bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static INLINED long long bits_of(double x)
{
    long long bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* exp(x) is 2^k (1 + more), where |x - k log(2)| <= log(2)/2: more is expm1(r) = r + r^2 q(r), where
   q is a polynomial of which the error is below 2^-58. k is in the last bits of `whole`. */
typedef struct {
    double whole, more;
} Reduced;
static INLINED Reduced reduced(double x)
{
    /* Added to this number, others are rounded to integers, which are then its last bits. */
    const double rounder = 0x1.8p52;
    double t = fma(x, 0x1.71547652b82fep+0, rounder), k = t - rounder;
    double r = fma(k, -0x1.abc9e3b39803fp-56, fma(k, -0x1.62e42fefa39efp-1, x));
    double r2 = r * r;
    double a = fma(0x1.55555555554f8p-3, r, 0x1.000000000000ap-1);
    double b = fma(0x1.111111112835ep-7, r, 0x1.55555555508cdp-5);
    double c = fma(0x1.a01a0127b78bfp-13, r, 0x1.6c16c1841a2abp-10);
    double d = fma(0x1.71df2b6297db1p-19, r, 0x1.a0199a3393f82p-16);
    double e = fma(0x1.ad7592af1ef43p-26, r, 0x1.28ad518fb4256p-22);
    double q = fma(fma(e, r2 * r2, fma(d, r2, c)), r2 * r2, fma(b, r2, a));
    return (Reduced){t, fma(r2, q, r)};
}

/* exp(-|x|) is power * (1 + more). */
typedef struct {
    double power, more;
} Exponential;
static INLINED Exponential exponential(double x)
{
    x = -fabs(x);
    /* From here on the power is 0 of itself: numbers below normal ones take many times as long. */
    x = x < -753.4 ? -753.4 : x;
    Reduced part = reduced(x);
    /* The power, which may be below normal numbers, from one that is not. */
    double power = number_of_bits((bits_of(part.whole) + 64 + 1023) << 52) * 0x1p-64;
    return (Exponential){power, part.more};
}

static INLINED double decay(double x)
{
    Exponential e = exponential(x);
    return fma(e.power, e.more, e.power);
}

/* From 1/2 on, 1 - power is exact. */
static INLINED double decayed(double x)
{
    Exponential e = exponential(x);
    return fma(-e.power, e.more, 1 - e.power);
}

/* log(1 + x) for 0 <= x <= 1: k log(2) + log(1 + f), where f is at most sqrt(2) - 1. With
   s = f/(2 + f) and z = s^2, log(1 + f) is 2 artanh(s) = f - s (f - 2 z g(z)); the error of g, a
   polynomial, comes to less than 2^-59 of the sum. */
static INLINED double log1p_of_part(double x)
{
    double k = x > 0x1.a827999fcef32p-2 ? 1 : 0, half = k / -2;
    double f = fma(x, 1 + half, half), s = f / (2 + f), z = s * s;
    double a = fma(fma(0x1.249249420f77bp-3, z, 0x1.999999997fbb9p-3), z, 0x1.5555555555593p-2);
    double b = fma(0x1.746644c4a73fbp-4, z, 0x1.c71c51eecadd9p-4);
    double c = fma(0x1.2f0c293675003p-4, z, 0x1.39a118fd23cedp-4);
    double g = fma(fma(c, z * z, b), z * z * z, a);
    return fma(k, 0x1.62e42fefa39efp-1, fma(-s, fma(-2 * z, g, f), f));
}

/* The first where x is negative, else the second. */
static INLINED double where_negative(double x, double a, double b)
{
    long long all = bits_of(x) >> 63;
    return number_of_bits((bits_of(a) & all) | (bits_of(b) & ~all));
}

static INLINED double quick_sech(double x)
{
    double e = decay(x);
    return 2 * e * (1 / fma(e, e, 1));
}

/* (1 - e^2) / (1 + e^2), of which the first is 2 d - d^2: at most 1, also when rounded. A remainder
   makes the product with a reciprocal, which others of the entry share, as right as a quotient. */
static INLINED double quick_tanh(double x)
{
    double e = decay(x), d = decayed(x), whole = fma(e, e, 1), share = 1 / whole;
    double part = fma(-d, d, 2 * d), found = part * share;
    return copysign(fma(fma(-found, whole, part), share, found), x);
}
