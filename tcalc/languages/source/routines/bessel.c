/* sin(pi v), exact where v is a multiple of a half. */
static double sin_pi(double v)
{
    const double turn = fmod(v, 2.0);
    return turn == floor(turn) ? 0 : sin(3.1415926535897932 * turn);
}

/* Y of orders v and v + 1, |v| <= 1/2, at x < 2 (Temme 1975): a series from limits at v = 0. */
static void bessel_y_series(double v, double x, double *y, double *above)
{
    /* Of 1 / gamma(1 + v): what is even in v, and what is odd over v. */
    static const double even[] = {1, -0.65587807152025388, 0.16653861138229149, -0.0096219715278769736,
        -0.0011651675918590651, 0.00012805028238811619, -1.2504934821426707e-6, -2.0563384169776071e-7,
        5.0020076444692229e-9, 1.0434267116911005e-10, -3.6968056186422057e-12};
    static const double odd[] = {0.57721566490153286, -0.042002635034095236, -0.042197734555544337,
        0.0072189432466630995, -0.00021524167411495097, -2.0134854780788239e-5, 1.1330272319816959e-6,
        6.1160951044814158e-9, -1.1812745704870201e-9, 7.7822634399050713e-12, 5.1003702874544760e-13};
    const double pi = 3.1415926535897932, square = v * v, logarithm = log(2 / x), e = v * logarithm;
    double gamma1 = 0, gamma2 = 0, scale = 1, sum, next;
    for (int k = 10; k >= 0; k--) {
        gamma1 = gamma1 * square - odd[k];
        gamma2 = gamma2 * square + even[k];
    }
    double f = 2 / pi * (v == 0 ? 1 : pi * v / sin(pi * v)) *
               (gamma1 * cosh(e) + gamma2 * (e == 0 ? 1 : sinh(e) / e) * logarithm);
    double p = exp(e) / (pi * (gamma2 - v * gamma1)), q = exp(-e) / (pi * (gamma2 + v * gamma1));
    const double half = sin(pi * v / 2), r = v == 0 ? 0 : 2 * half * half / v;
    sum = f + r * q;
    next = p;
    for (int k = 1; k < 100; k++) {
        f = (k * f + p + q) / (k * k - square);
        p /= k - v;
        q /= k + v;
        scale *= -x * x / 4 / k;
        const double term = scale * (f + r * q);
        sum += term;
        next += scale * p - k * term;
        if (fabs(term) < 1e-17 * (1 + fabs(sum)))
            break;
    }
    *y = -sum;
    *above = -2 / x * next;
}

/* J and Y of order v >= 0 at x > 0. Orders are lowered by recurrence from far above, where J is
   smallest, to one where Y is known: by its series, or with J from (J' + i Y') / (J + i Y), a
   continued fraction (Barnett, Feng, Steed and Goldfarb 1974); by Hankel's expansion where x is large. */
static void bessel_jy(double v, double x, double *j, double *y)
{
    const double pi = 3.1415926535897932;
    if (x > 25 + v * v / 2) {
        const double angle = x - (v / 2 + 0.25) * pi, size = sqrt(2 / (pi * x));
        double sums[2] = {1, 0}, term = 1;
        for (int k = 1; k < 60 && fabs(term) > 1e-17; k++) {
            term *= (v - k + 0.5) * (v + k - 0.5) / (2 * k * x);
            sums[k % 2] += k % 4 > 1 ? -term : term;
        }
        *j = isinf(x) ? 0 : size * (cos(angle) * sums[0] - sin(angle) * sums[1]);
        *y = isinf(x) ? 0 : size * (sin(angle) * sums[0] + cos(angle) * sums[1]);
        return;
    }
    const int steps = x < 2 ? (int)(v + 0.5) : v > x ? (int)(v - x + 1) : 0;
    const double low = v - steps, wronskian = 2 / (pi * x);
    double next = 0, here = 1e-300, wanted = 0, known, above;
    for (int k = steps + 40 + (int)(x + 8 * cbrt(x)); k > 0; k--) {
        wanted = k == steps ? here : wanted;
        const double before = 2 * (low + k) / x * here - next;
        next = here;
        here = before;
        if (fabs(here) > 1e200) {
            here *= 1e-200;
            next *= 1e-200;
            wanted *= 1e-200;
        }
    }
    here = here == 0 ? 1e-300 : here;
    wanted = steps ? wanted : here;
    const double slope = low / x - next / here;
    if (x < 2) {
        bessel_y_series(low, x, &known, &above);
        *j = wanted / here * wronskian / (low / x * known - above - slope * known);
    } else {
        double complex tail = 0;
        for (int k = 20 + (int)(300 / x); k > 0; k--)
            tail = ((k - 0.5) * (k - 0.5) - low * low) / (2 * (x + k * I) + tail);
        const double complex ratio = -0.5 / x + I + I / x * tail;
        const double p = creal(ratio), q = cimag(ratio), tangent = (p - slope) / q;
        const double found = copysign(sqrt(wronskian / ((p - slope) * tangent + q)), here);
        known = found * tangent;
        above = low / x * known - found * (tangent * p + q);
        *j = wanted / here * found;
    }
    for (int k = 1; k <= steps && !isinf(known); k++) {
        const double more = 2 * (low + k) / x * above - known;
        known = above;
        above = more;
    }
    *y = known;
}

/* J and Y of any order at x >= 0. */
static void bessel_of_order(double v, double x, double *j, double *y)
{
    const double order = fabs(v), s = sin_pi(order), c = sin_pi(order + 0.5);
    if (x > 0)
        bessel_jy(order, x, j, y);
    else
        *y = -INFINITY;
    if (x < 1e-10)
        *j = pow(x / 2, order) / tgamma(order + 1);
    if (v < 0) {
        const double found = *j;
        *j = (c == 0 ? 0 : c * found) - (s == 0 ? 0 : s * *y);
        *y = (s == 0 ? 0 : s * found) + (c == 0 ? 0 : c * *y);
    }
}

static double bessel_j(double v, double x)
{
    double j, y;
    const int whole = v == floor(v);
    if (isnan(v) || isnan(x) || (x < 0 && !whole))
        return NAN;
    bessel_of_order(v, fabs(x), &j, &y);
    return x < 0 && fmod(v, 2.0) != 0 ? -j : j;
}

static double bessel_y(double v, double x)
{
    double j, y;
    if (isnan(v) || !(x >= 0))
        return NAN;
    bessel_of_order(v, x, &j, &y);
    return y;
}

/* exp(x) K of order v >= 0 at x > 0: the integral of exp(x - x cosh(t)) cosh(v t), by the trapezoidal
   rule, which is exact to rounding at this step. */
static double bessel_k_scaled(double v, double x)
{
    const double narrow = 0.6 / sqrt(hypot(v, x)), step = narrow < 0.2 ? narrow : 0.2;
    double sum = 0.5, top = 0;
    if (isinf(x))
        return 0;
    for (double t = step;; t += step) {
        const double s = sinh(t / 2), power = v * t - 2 * x * s * s;
        if (power < top - 45)
            break;
        top = power > top ? power : top;
        sum += exp(power) * (1 + exp(-2 * v * t)) / 2;
    }
    return sum * step;
}

/* exp(-x) I of order v >= 0 at x > 0, by the ratio of neighbouring orders and the Wronskian with K;
   by Hankel's expansion where x is large. */
static double bessel_i_scaled(double v, double x)
{
    double ratio = 0, sum = 1, term = 1;
    if (x > 25 + v * v / 2) {
        for (int k = 1; k < 60 && fabs(term) > 1e-17; k++)
            sum += term *= -(v - k + 0.5) * (v + k - 0.5) / (2 * k * x);
        return sum / sqrt(6.2831853071795865 * x);
    }
    for (int k = 40 + (int)x; k > 0; k--)
        ratio = 1 / (2 * (v + k) / x + ratio);
    return 1 / (x * (bessel_k_scaled(v + 1, x) + ratio * bessel_k_scaled(v, x)));
}

static double bessel_k(double v, double x)
{
    if (isnan(v) || !(x >= 0))
        return NAN;
    return x == 0 ? INFINITY : exp(-x) * bessel_k_scaled(fabs(v), x);
}

/* exp(-|x|) I */
static double bessel_ie(double v, double x)
{
    const int whole = v == floor(v);
    if (isnan(v) || isnan(x) || (x < 0 && !whole))
        return NAN;
    const double order = fabs(v), size = fabs(x);
    double found = size < 1e-10 ? pow(size / 2, order) / tgamma(order + 1) : bessel_i_scaled(order, size);
    if (v < 0 && !whole)
        found += sin_pi(order) * 0.63661977236758134 * exp(-size) * bessel_k(order, size);
    return x < 0 && fmod(v, 2.0) != 0 ? -found : found;
}

static double bessel_i(double v, double x)
{
    const double half = exp(fabs(x) / 2);
    return bessel_ie(v, x) * half * half;
}

/* The spherical function j of a whole order. */
static double spherical_j(double n, double x)
{
    if (!(n >= 0) || n != floor(n))
        return NAN;
    const double size = fabs(x);
    const double found = x == 0 ? n == 0 : sqrt(1.5707963267948966 / size) * bessel_j(n + 0.5, size);
    return x < 0 && fmod(n, 2.0) != 0 ? -found : found;
}
