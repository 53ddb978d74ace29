static inline real gammaln(real x)
{
    return x == -INFINITY ? x : lgamma(x);
}

static inline real rgamma(real x)
{
    return x <= 0 && x == floor(x) ? 0 : 1 / tgamma(x);
}

static inline real gammasgn(real x)
{
    if (x > 0 || isnan(x))
        return x > 0 ? 1 : x;
    if (x == floor(x))
        return x == 0 ? (signbit(x) ? -1 : 1) : NAN;
    return fmod(floor(x), (real)2) == 0 ? 1 : -1;
}

/* What Stirling's formula leaves of gammaln(x), for x from 10 on. */
static double stirling_rest(double x)
{
    const double z = 1 / (x * x);
    return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 -
            z * (691.0 / 360360 - z / 156)))))) / x;
}

static double betaln(double a, double b)
{
    const double small = a < b ? a : b, large = a < b ? b : a;
    if (!(large >= 10 && small > 0))
        return lgamma(a) + lgamma(b) - lgamma(a + b);
    const double rest = stirling_rest(large) - stirling_rest(large + small);
    if (small < 10)
        return lgamma(small) + rest - (large - 0.5) * log1p(small / large) -
               small * log(large + small) + small;
    return 0.91893853320467274 + stirling_rest(small) + rest +
           (small - 0.5) * log(small / (small + large)) - large * log1p(small / large) -
           0.5 * log(large);
}

static double beta_function(double a, double b)
{
    if (a + b < 100 && a > 0 && b > 0)
        return tgamma(a) / tgamma(a + b) * tgamma(b);
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * exp(betaln(a, b));
}

static double digamma(double x)
{
    double found = 0;
    if (x <= 0) {
        if (x == floor(x))
            return x == 0 ? copysign(INFINITY, -x) : NAN;
        const double part = x - rint(x);
        found = -3.1415926535897932 / tan(3.1415926535897932 * part);
        x = 1 - x;
    }
    for (; x < 12; x++)
        found -= 1 / x;
    const double z = 1 / (x * x);
    return found + log(x) - 0.5 / x -
           z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 -
           z * (691.0 / 32760 - z / 12))))));
}

/* x^-s; of whole numbers s up to 8 by products, which is faster. */
static double falling_power(double x, double s)
{
    double found = 1;
    if (s > 8 || s != floor(s))
        return pow(x, -s);
    for (int k = (int)s; k > 0; k--)
        found *= x;
    return 1 / found;
}

/* The sum of (x + k)^-s over k = 0, 1, …, its end by Euler and Maclaurin. */
static double hurwitz_zeta(double s, double x)
{
    static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66,
                                       -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798};
    double sum = 0, term;
    for (; x < s + 15; x++)
        sum += falling_power(x, s);
    term = falling_power(x, s);
    sum += falling_power(x, s - 1) / (s - 1) + term / 2;
    term *= s / 2 / x;
    for (int k = 1; k < 10; k++) {
        sum += bernoulli[k - 1] * term;
        term *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1.0) * (2 * k + 2.0) * x * x);
    }
    return sum;
}

/* The derivative of order n of digamma: n! times the sum of (x + k)^-(n + 1), signed. Of a negative
   x, the terms below 0 are a sum of positive ones that ends. */
static double polygamma(double n, double x)
{
    const double s = n + 1, sign = fmod(n, 2.0) == 1 ? 1 : -1;
    if (n == 0)
        return digamma(x);
    if (n < 0 || n != floor(n) || isnan(x))
        return NAN;
    if (x <= 0 && x == floor(x))
        return INFINITY;
    if (x > 0)
        return sign * tgamma(s) * hurwitz_zeta(s, x);
    const double below = -x - floor(-x);
    return sign * tgamma(s) * (hurwitz_zeta(s, 1 - below) +
                               sign * (hurwitz_zeta(s, below) - hurwitz_zeta(s, 1 - x)));
}

static inline double ndtr(double x)
{
    return erfc(-x * 0.70710678118654752) / 2;
}

static double log_ndtr(double x)
{
    if (x > 1)
        return log1p(-erfc(x * 0.70710678118654752) / 2);
    if (x > -30)
        return log(ndtr(x));
    const double z = 1 / (x * x);
    return -x * x / 2 - log(-x) - 0.91893853320467274 +
           log1p(-z * (1 - z * (3 - z * (15 - z * (105 - z * 945)))));
}

/* The x with erfc(x) = q, by Newton's method: for the logarithm where q is small. */
static double erfcinv(double q)
{
    if (!(q > 0 && q < 2))
        return q == 0 ? INFINITY : q == 2 ? -INFINITY : NAN;
    const double side = q > 1 ? -1 : 1;
    q = q > 1 ? 2 - q : q;
    double x = 0.88622692545275801 * (1 - q);
    if (q < 0.5) {
        const double l = -log(q * 1.7724538509055160);
        x = sqrt(l - 0.5 * log(l > 1 ? l : 1));
    }
    for (int turn = 0; turn < 12; turn++) {
        const double slope = -1.1283791670955126 * exp(-x * x), value = erfc(x);
        const double step = q < 0.5 ? log(value / q) * value / slope : (value - q) / slope;
        x -= step;
        if (fabs(step) <= 1e-16 * fabs(x))
            break;
    }
    return side * x;
}

static double erfinv(double y)
{
    if (fabs(y) > 0.5)
        return y > 0 ? erfcinv(1 - y) : -erfcinv(1 + y);
    double x = 0.88622692545275801 * y;
    for (int turn = 0; turn < 8; turn++)
        x -= (erf(x) - y) / (1.1283791670955126 * exp(-x * x));
    return x;
}

static double ndtri(double p)
{
    return -1.4142135623730951 * erfcinv(2 * p);
}

/* x^a exp(-x) / gamma(a + 1) */
static double gamma_term(double a, double x)
{
    if (a < 10)
        return exp(a * log(x) - x - lgamma(a + 1));
    const double d = (x - a) / a, ratio = fabs(d) < 0.5 ? log1p(d) - d : log(x / a) - d;
    return exp(a * ratio - stirling_rest(a)) / sqrt(6.2831853071795865 * a);
}

/* The share of the gamma distribution below x (or above), by its series and its continued fraction. */
static double gamma_share(double a, double x, int above)
{
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0))
        return NAN;
    if (x == 0 || isinf(x) || a == 0)
        return (x == 0 && a > 0) == above;
    if (x < a + 1) {
        double term = 1, sum = 1;
        for (int k = 1; k < 100000 && fabs(term) > 1e-17 * sum; k++)
            sum += term *= x / (a + k);
        sum *= gamma_term(a, x);
        return above ? 1 - sum : sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, change = 0;
    for (int k = 1; k < 100000 && fabs(change - 1) > 1e-16; k++) {
        const double factor = -k * (k - a);
        b += 2;
        d = factor * d + b;
        c = b + factor / c;
        d = 1 / (d == 0 ? 1e-300 : d);
        c = c == 0 ? 1e-300 : c;
        h *= change = d * c;
    }
    h *= gamma_term(a, x) * a;
    return above ? h : 1 - h;
}

static double gammainc(double a, double x)
{
    return gamma_share(a, x, 0);
}

static double gammaincc(double a, double x)
{
    return gamma_share(a, x, 1);
}

/* The share of the beta distribution below x, y = 1 - x, by its continued fraction. */
static double beta_share(double a, double b, double x, double y)
{
    if (!(a > 0 && b > 0 && x >= 0 && y >= 0))
        return NAN;
    if (x == 0 || y == 0)
        return y == 0;
    const int turned = x > (a + 1) / (a + b + 2);
    if (turned) {
        const double shape = a, place = x;
        a = b;
        b = shape;
        x = y;
        y = place;
    }
    double c = 1, d = 1 - (a + b) * x / (a + 1), h, change = 0;
    d = 1 / (d == 0 ? 1e-300 : d);
    h = d;
    for (int k = 1; k < 100000 && fabs(change - 1) > 1e-16; k++)
        for (int odd = 0; odd < 2; odd++) {
            const double factor = odd ? -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
                                      : k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
            d = 1 + factor * d;
            c = 1 + factor / c;
            d = 1 / (d == 0 ? 1e-300 : d);
            c = c == 0 ? 1e-300 : c;
            h *= change = d * c;
        }
    h *= exp(a * log(x) + b * log(y) - betaln(a, b)) / a;
    return turned ? 1 - h : h;
}

static double betainc(double a, double b, double x)
{
    return beta_share(a, b, x, 1 - x);
}

static double stdtr(double df, double t)
{
    const double square = t * t;
    const double tail = beta_share(df / 2, 0.5, df / (df + square), square / (df + square)) / 2;
    return t > 0 ? 1 - tail : tail;
}

static double binomial(int n, int k)
{
    double found = 1;
    for (int i = 1; i <= k; i++)
        found = found * (n - k + i) / i;
    return found;
}

/* The derivative of order n of the normal density over its distribution function; far to the left by
   a continued fraction of power series. */
static double inverse_mills(double order, double x)
{
    enum { MOST = 40 };
    const int n = order >= 0 && order <= MOST && order == floor(order) ? (int)order : -1;
    const double low = n == 0 ? -8 : n == 1 ? -4 : -3;
    const int depth = n == 0 ? 8 : n == 1 ? 24 : 40;
    double h[MOST + 1], u[MOST + 1], t[MOST + 1];
    if (n < 0 || isnan(x))
        return NAN;
    if (x > low) {
        const double at = x < 60 ? x : 60;
        h[0] = exp(-0.5 * at * at) / (ndtr(at) * 2.5066282746310005);
        u[0] = at + h[0];
        for (int k = 0; k < n; k++) {
            h[k + 1] = 0;
            for (int j = 0; j <= k; j++)
                h[k + 1] -= binomial(k, j) * h[j] * u[k - j];
            u[k + 1] = h[k + 1] + (k == 0);
        }
        return h[n];
    }
    const double z = -x;
    t[0] = 2 * (depth + 1) / (z + sqrt(z * z + 4 * (depth + 1)));
    for (int m = 1; m <= n; m++) {
        double sum = 0;
        for (int j = 1; j < m; j++)
            sum += t[j] * t[m - j];
        t[m] = (t[m - 1] - sum) / (2 * t[0] + z);
    }
    for (int k = depth; k > 0; k--) {
        u[0] = z + t[0];
        for (int m = 1; m <= n; m++)
            u[m] = t[m] - (m == 1);
        t[0] = k / u[0];
        for (int m = 1; m <= n; m++) {
            t[m] = 0;
            for (int j = 1; j <= m; j++)
                t[m] -= u[j] * t[m - j] / u[0];
        }
    }
    return t[n] * tgamma(n + 1.0) + (n == 0 ? z : -(n == 1));
}
