/* v diag(w) v' = (a + a') / 2, w ascending: rotations of pairs (Jacobi). `space` holds a matrix. */
static int eigh(ptrdiff_t n, const real *a, real *w, real *v, real *space)
{
    real *s = space, off = 1;
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            s[i * n + j] = (a[i * n + j] + a[j * n + i]) / 2;
            v[i * n + j] = i == j;
        }
    for (int sweep = 0; sweep < 60 && off > 0; sweep++) {
        off = 0;
        for (ptrdiff_t p = 0; p < n; p++)
            for (ptrdiff_t q = p + 1; q < n; q++) {
                const real x = s[p * n + q], dp = s[p * (n + 1)], dq = s[q * (n + 1)];
                if (fabs(x) <= REAL_EPSILON / 16 * sqrt(fabs(dp)) * sqrt(fabs(dq)))
                    continue;
                if (fabs(dp) + fabs(x) / 64 == fabs(dp) && fabs(dq) + fabs(x) / 64 == fabs(dq))
                    continue;
                off += fabs(x);
                const real theta = (dq - dp) / (2 * x);
                const real t = (theta < 0 ? -1 : 1) / (fabs(theta) + hypot(theta, (real)1));
                const real c = 1 / sqrt(t * t + 1), d = t * c;
                for (ptrdiff_t k = 0; k < n; k++) {
                    const real y = s[k * n + p], z = s[k * n + q];
                    s[k * n + p] = c * y - d * z;
                    s[k * n + q] = d * y + c * z;
                }
                for (ptrdiff_t k = 0; k < n; k++) {
                    const real y = s[p * n + k], z = s[q * n + k];
                    s[p * n + k] = c * y - d * z;
                    s[q * n + k] = d * y + c * z;
                }
                s[p * n + q] = s[q * n + p] = 0;
                for (ptrdiff_t k = 0; k < n; k++) { /* rows of v are vectors until the end */
                    const real y = v[p * n + k], z = v[q * n + k];
                    v[p * n + k] = c * y - d * z;
                    v[q * n + k] = d * y + c * z;
                }
            }
    }
    for (ptrdiff_t i = 0; i < n; i++)
        w[i] = s[i * (n + 1)];
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t least = i;
        for (ptrdiff_t j = i + 1; j < n; j++)
            least = w[j] < w[least] ? j : least;
        const real moved = w[i];
        w[i] = w[least];
        w[least] = moved;
        for (ptrdiff_t k = 0; k < n; k++) {
            const real other = v[i * n + k];
            v[i * n + k] = v[least * n + k];
            v[least * n + k] = other;
        }
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < i; j++) {
            const real moved = v[i * n + j];
            v[i * n + j] = v[j * n + i];
            v[j * n + i] = moved;
        }
    return off > 0;
}

/* Rows of b (k of length n, k <= n) are turned until they are orthogonal, those of r alike; s has
   their lengths, descending, and b unit vectors. 1: no convergence. */
static int orthogonal_rows(ptrdiff_t k, ptrdiff_t n, real *b, real *r, real *s)
{
    int moving = 1;
    for (int sweep = 0; sweep < 60 && moving; sweep++) {
        moving = 0;
        for (ptrdiff_t p = 0; p < k; p++)
            for (ptrdiff_t q = p + 1; q < k; q++) {
                real *y = b + p * n, *z = b + q * n;
                const real yy = dot(n, y, y), zz = dot(n, z, z), yz = dot(n, y, z);
                if (!(fabs(yz) > REAL_EPSILON / 2 * sqrt(yy) * sqrt(zz)))
                    continue;
                moving = fabs(yz) > 8 * REAL_EPSILON * sqrt(yy) * sqrt(zz) || moving;
                const real theta = (zz - yy) / (2 * yz);
                const real t = (theta < 0 ? -1 : 1) / (fabs(theta) + hypot(theta, (real)1));
                const real c = 1 / sqrt(t * t + 1), d = t * c;
                for (ptrdiff_t i = 0; i < n; i++) {
                    const real u = y[i], v = z[i];
                    y[i] = c * u - d * v;
                    z[i] = d * u + c * v;
                }
                for (ptrdiff_t i = 0; i < k; i++) {
                    const real u = r[p * k + i], v = r[q * k + i];
                    r[p * k + i] = c * u - d * v;
                    r[q * k + i] = d * u + c * v;
                }
            }
    }
    for (ptrdiff_t i = 0; i < k; i++)
        s[i] = norm2(n, b + i * n);
    for (ptrdiff_t i = 0; i < k; i++) {
        ptrdiff_t top = i;
        for (ptrdiff_t j = i + 1; j < k; j++)
            top = s[j] > s[top] ? j : top;
        const real length = s[i];
        s[i] = s[top];
        s[top] = length;
        for (ptrdiff_t j = 0; j < n; j++) {
            const real moved = b[i * n + j];
            b[i * n + j] = b[top * n + j];
            b[top * n + j] = moved;
        }
        for (ptrdiff_t j = 0; j < k; j++) {
            const real moved = r[i * k + j];
            r[i * k + j] = r[top * k + j];
            r[top * k + j] = moved;
        }
    }
    for (ptrdiff_t i = 0; i < k; i++) {
        real length = s[i], *row = b + i * n;
        for (ptrdiff_t unit = 0; !(length > 0) && unit < n; unit++) { /* any other direction */
            for (ptrdiff_t j = 0; j < n; j++)
                row[j] = j == unit;
            for (int turn = 0; turn < 2; turn++)
                for (ptrdiff_t p = 0; p < i; p++) {
                    const real share = dot(n, row, b + p * n);
                    for (ptrdiff_t j = 0; j < n; j++)
                        row[j] -= share * b[p * n + j];
                }
            length = norm2(n, row);
            length = length > 0.5 / sqrt((real)n) ? length : 0;
        }
        for (ptrdiff_t j = 0; j < n; j++)
            row[j] /= length;
    }
    return moving;
}

/* u diag(s) vh = a, s descending; u has m x k and vh k x n entries for the smaller one k of m and n.
   `space` holds k x k and k x max(m, n) numbers. */
static int svd(ptrdiff_t m, ptrdiff_t n, const real *a, real *u, real *s, real *vh, real *space)
{
    ptrdiff_t k = m < n ? m : n, length = m < n ? n : m;
    real *r = space, *b = space + k * k;
    for (ptrdiff_t i = 0; i < k; i++) {
        for (ptrdiff_t j = 0; j < k; j++)
            r[i * k + j] = i == j;
        for (ptrdiff_t j = 0; j < length; j++)
            b[i * length + j] = m < n ? a[i * n + j] : a[j * n + i];
    }
    int failed = orthogonal_rows(k, length, b, r, s);
    for (ptrdiff_t p = 0; p < k; p++) {
        for (ptrdiff_t i = 0; i < m; i++)
            u[i * k + p] = m < n ? r[p * k + i] : b[p * length + i];
        for (ptrdiff_t j = 0; j < n; j++)
            vh[p * n + j] = m < n ? b[p * length + j] : r[p * k + j];
    }
    return failed;
}

/* x = a^+; `space` holds u, s, vh and what svd needs. */
static int pinv(ptrdiff_t m, ptrdiff_t n, const real *a, real *x, real *space)
{
    ptrdiff_t k = m < n ? m : n, length = m < n ? n : m;
    real *u = space, *s = u + m * k, *vh = s + k;
    int failed = svd(m, n, a, u, s, vh, vh + k * n);
    for (ptrdiff_t p = 0; p < k; p++)
        for (ptrdiff_t i = 0; i < m; i++)
            u[i * k + p] *= s[p] > length * REAL_EPSILON * s[0] ? 1 / s[p] : 0;
    product(n, m, k, vh, 1, n, u, 1, k, x);
    return failed;
}

/* -1 for columns whose largest entry is negative, else 1. */
static void column_signs(ptrdiff_t m, ptrdiff_t n, const real *v, real *out)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        ptrdiff_t top = 0;
        for (ptrdiff_t i = 1; i < m; i++)
            top = fabs(v[i * n + j]) > fabs(v[top * n + j]) ? i : top;
        out[j] = v[top * n + j] < 0 ? -1 : 1;
    }
}

/* How far eigenvalues may be apart that are equal but for rounding. */
static real rounding_of(ptrdiff_t n, const real *w)
{
    real top = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        top = fabs(w[i]) > top ? fabs(w[i]) : top;
    return (n > 16 ? n : 16) * REAL_EPSILON * top;
}

/* 1 / (w[j] - w[i]); equal ones are refused (2), no number, or taken to be `least` apart. */
static int gaps(ptrdiff_t n, const real *w, real *out, char degenerate, real least)
{
    const real rounding = rounding_of(n, w);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            real d = w[j] - w[i];
            if (i != j && least > 0)
                d = (fabs(d) > least ? fabs(d) : least) * (d < 0 ? -1 : 1);
            else if (i != j && fabs(d) <= rounding) {
                if (degenerate != 'n')
                    return 1;
                d = NAN;
            }
            out[i * n + j] = i == j ? 0 : 1 / d;
        }
    return 0;
}

/* w[j] / ((w[j] + w[i]) (w[j] - w[i])); equal ones as `degenerate` says. */
static int svd_gaps(ptrdiff_t n, const real *s, real *out, char degenerate, real least)
{
    const real rounding = rounding_of(n, s);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            real d = s[j] - s[i], total = s[j] + s[i], instead = NAN;
            int tied = i != j && fabs(d) <= rounding;
            if (tied && (degenerate == 'r' || degenerate == 'o' || (degenerate == 's' && i == 0)))
                return 1;
            if (least > 0) {
                d = (fabs(d) > least ? fabs(d) : least) * (d < 0 ? -1 : 1);
                tied = 0;
            } else if (degenerate == 'u' || degenerate == 's')
                instead = total > rounding ? 0.5 / total : 0;
            const real share = s[j] / (total > 0 ? total : 1);
            out[i * n + j] = i == j ? 0 : tied ? instead : share / d;
        }
    return 0;
}

/* 1 / s; those that are 0 as `degenerate` says. */
static int svd_reciprocal(ptrdiff_t n, const real *s, real *out, char degenerate, real least)
{
    const real rounding = rounding_of(n, s);
    const int norm = degenerate == 'u' || degenerate == 's';
    for (ptrdiff_t i = 0; i < n; i++) {
        const int zero = s[i] <= rounding;
        if (least > 0) {
            out[i] = 1 / (s[i] > least ? s[i] : least);
            continue;
        }
        if (zero && !norm && degenerate != 'n')
            return 1;
        out[i] = zero ? norm ? 0 : NAN : 1 / s[i];
    }
    return 0;
}
