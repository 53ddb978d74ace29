#ifdef SINGLE
#define COMPLEX float complex
#else
#define COMPLEX double complex
#endif

/* c = a b for n x n matrices, each with stars in its place: 'c' is conjugated and transposed. */
static void complex_product(ptrdiff_t n, const COMPLEX *a, char star_a, const COMPLEX *b, char star_b,
                            COMPLEX *c)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            COMPLEX sum = 0;
            for (ptrdiff_t k = 0; k < n; k++)
                sum += (star_a == 'c' ? conj(a[k * n + i]) : a[i * n + k]) *
                       (star_b == 'c' ? conj(b[j * n + k]) : b[k * n + j]);
            c[i * n + j] = sum;
        }
}

/* The rotation by c and s of two rows of length n, or of two columns, entries so far apart. */
static void rotate(ptrdiff_t n, COMPLEX *x, COMPLEX *y, ptrdiff_t apart, real c, COMPLEX s)
{
    for (ptrdiff_t k = 0; k < n * apart; k += apart) {
        const COMPLEX before = x[k];
        x[k] = c * before + s * y[k];
        y[k] = c * y[k] - conj(s) * before;
    }
}

/* Rows k and k + 1 of t and of u* in t = u* a u are turned so that y becomes 0 beside x. */
static void turn_pair(ptrdiff_t n, COMPLEX *t, COMPLEX *u, ptrdiff_t k, COMPLEX x, COMPLEX y)
{
    const real size = hypot(cabs(x), cabs(y));
    const real c = size > 0 ? cabs(x) / size : 1;
    const COMPLEX s = size > 0 ? (cabs(x) > 0 ? x / cabs(x) : 1) * conj(y) / size : 0;
    rotate(n, t + k * n, t + (k + 1) * n, 1, c, s);
    rotate(n, t + k, t + k + 1, n, c, conj(s));
    rotate(n, u + k, u + k + 1, n, c, conj(s));
}

/* u t u* = a with a triangle t: Hessenberg's form, then shifted steps of QR. 1: no convergence. */
static int schur(ptrdiff_t n, const real *a, COMPLEX *t, COMPLEX *u)
{
    for (ptrdiff_t i = 0; i < n * n; i++) {
        t[i] = a[i];
        u[i] = i % (n + 1) == 0;
    }
    for (ptrdiff_t j = 0; j < n - 2; j++)
        for (ptrdiff_t i = n - 2; i > j; i--) {
            turn_pair(n, t, u, i, t[i * n + j], t[(i + 1) * n + j]);
            t[(i + 1) * n + j] = 0;
        }
    int turns = 0;
    for (ptrdiff_t last = n - 1; last > 0;) {
        ptrdiff_t first = last;
        for (; first > 0; first--) {
            const real near = cabs(t[first * (n + 1)]) + cabs(t[(first - 1) * (n + 1)]);
            COMPLEX *below = t + first * n + first - 1;
            if (cabs(*below) <= REAL_EPSILON * (near > 0 ? near : norm_1(n, a))) {
                *below = 0;
                break;
            }
        }
        if (first == last) {
            last--;
            turns = 0;
            continue;
        }
        if (++turns > 60)
            return 1;
        const COMPLEX *end = t + (last - 1) * (n + 1);
        const COMPLEX mean = (end[0] + end[n + 1]) / 2, half = (end[0] - end[n + 1]) / 2;
        const COMPLEX root = csqrt(half * half + end[1] * end[n]);
        COMPLEX shift = cabs(mean + root - end[n + 1]) < cabs(mean - root - end[n + 1]) ? mean + root
                                                                                      : mean - root;
        shift = turns % 10 ? shift : end[n + 1] + cabs(end[n]);
        for (ptrdiff_t k = first; k < last; k++) {
            const COMPLEX *at = t + k * n + k - (k > first);
            turn_pair(n, t, u, k, at[0] - (k > first ? 0 : shift), at[n]);
            if (k > first)
                t[(k + 1) * n + k - 1] = 0;
        }
    }
    return 0;
}

/* A sum's first matrix as u t u*; by eigenvectors where it is symmetric. 1: no convergence, or
   eigenvalues of which the function is not real: negative ones, those that are 0 if `regular`, and two
   of them that are 0 where the matrix is not symmetric. `space` holds n (2 n + 1) numbers. */
static int in_schur_form(ptrdiff_t n, const real *a, COMPLEX *t, COMPLEX *u, int regular, real *space)
{
    int symmetric = 1, zeros = 0;
    real top = 0, *w = space + 2 * n * n;
    for (ptrdiff_t i = 0; i < n * n; i++)
        symmetric = symmetric && a[i] == a[i % n * n + i / n];
    if (symmetric) {
        if (eigh(n, a, w, space, space + n * n))
            return 1;
        for (ptrdiff_t i = 0; i < n * n; i++) {
            t[i] = i % (n + 1) ? 0 : w[i / n];
            u[i] = space[i];
        }
    } else if (schur(n, a, t, u))
        return 1;
    for (ptrdiff_t i = 0; i < n; i++)
        top = cabs(t[i * (n + 1)]) > top ? cabs(t[i * (n + 1)]) : top;
    for (ptrdiff_t i = 0; i < n; i++) {
        COMPLEX *value = t + i * (n + 1);
        const real rounding = n * REAL_EPSILON * top;
        if (cabs(*value) <= rounding) {
            *value = 0;
            zeros++;
        } else if (creal(*value) < 0 && fabs(cimag(*value)) <= rounding)
            return 1;
    }
    return zeros > (regular ? 0 : symmetric ? n : 1);
}

/* The principal square root of a triangle, in its place: column after column. */
static void triangular_root(ptrdiff_t n, COMPLEX *t)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        t[j * (n + 1)] = csqrt(t[j * (n + 1)]);
        for (ptrdiff_t i = j; i-- > 0;) {
            COMPLEX rest = t[i * n + j];
            for (ptrdiff_t k = i + 1; k < j; k++)
                rest -= t[i * n + k] * t[k * n + j];
            t[i * n + j] = rest == 0 ? 0 : rest / (t[i * (n + 1)] + t[j * (n + 1)]);
        }
    }
}

/* The y with x y + y x = c, x = u t u*, in the place of c. `space` holds 2 matrices. */
static void sylvester(ptrdiff_t n, const COMPLEX *t, const COMPLEX *u, real *c, COMPLEX *space)
{
    COMPLEX *y = space, *product = y + n * n;
    for (ptrdiff_t i = 0; i < n * n; i++)
        y[i] = c[i];
    complex_product(n, u, 'c', y, 'n', product);
    complex_product(n, product, 'n', u, 'n', y);
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = n; i-- > 0;) {
            COMPLEX rest = y[i * n + j];
            for (ptrdiff_t k = i + 1; k < n; k++)
                rest -= t[i * n + k] * y[k * n + j];
            for (ptrdiff_t k = 0; k < j; k++)
                rest -= y[i * n + k] * t[k * n + j];
            y[i * n + j] = rest / (t[i * (n + 1)] + t[j * (n + 1)]);
        }
    complex_product(n, u, 'n', y, 'n', product);
    complex_product(n, product, 'n', u, 'c', y);
    for (ptrdiff_t i = 0; i < n * n; i++)
        c[i] = creal(y[i]);
}

/* x = u t u*, which is real. `space` holds 2 matrices. */
static void from_schur_form(ptrdiff_t n, const COMPLEX *t, const COMPLEX *u, real *x, COMPLEX *space)
{
    complex_product(n, u, 'n', t, 'n', space);
    complex_product(n, space, 'n', u, 'c', space + n * n);
    for (ptrdiff_t i = 0; i < n * n; i++)
        x[i] = creal(space[n * n + i]);
}

/* The square root of a sum whose first matrix is u t u*, in its place, and that of t (Bjorck and
   Hammarling 1983); the root's first matrix is u t u* then. `space` holds 2 matrices. */
static void jet_root(ptrdiff_t n, int q, real *x, COMPLEX *t, const COMPLEX *u, COMPLEX *space)
{
    triangular_root(n, t);
    for (int whole = 1; whole < 1 << q; whole++) {
        for (int part = (whole - 1) & whole; part; part = (part - 1) & whole)
            multiply(n, n, n, -1, x + part * n * n, n, 1, x + (whole ^ part) * n * n, n, 1, 1,
                     x + whole * n * n, n);
        sylvester(n, t, u, x + whole * n * n, space);
    }
}

/* The square root's derivative along q directions, itself where q is 0. `space` holds one sum
   and 8 matrices. */
static int sqrtm_frechet(ptrdiff_t n, int q, const real *a, const real *const *directions, real *out,
                         real *space)
{
    const ptrdiff_t size = n * n << q;
    real *x = space;
    COMPLEX *t = (COMPLEX *)(x + size), *u = t + n * n, *rest = u + n * n;
    if (jet_of(n, q, a, directions, x) || in_schur_form(n, a, t, u, q > 0, (real *)rest))
        return 1;
    jet_root(n, q, x, t, u, rest);
    from_schur_form(n, t, u, x, rest);
    memcpy(out, x + size - n * n, (size_t)(n * n) * sizeof(real));
    return 0;
}

/* Nodes and weights of Gauss and Legendre on [0, 1]. */
static void legendre(int count, double *node, double *weight)
{
    for (int i = 0; i < count; i++) {
        double x = cos(3.1415926535897932 * (i + 0.75) / (count + 0.5)), slope = 1;
        for (int turn = 0; turn < 8; turn++) {
            double p = 1, before = 0;
            for (int k = 1; k <= count; k++) {
                const double next = ((2 * k - 1) * x * p - (k - 1) * before) / k;
                before = p;
                p = next;
            }
            slope = count * (x * p - before) / (x * x - 1);
            x -= p / slope;
        }
        node[i] = (1 + x) / 2;
        weight[i] = 1 / ((1 - x * x) * slope * slope);
    }
}

/* The logarithm's derivative along q directions, itself where q is 0: roots until it is near the
   identity, then a Pade approximant as partial fractions (Higham 2008, section 11.4). `space` holds
   3 sums and 8 matrices. */
static int logm_frechet(ptrdiff_t n, int q, const real *a, const real *const *directions, real *out,
                        real *space)
{
    enum { NODES = 10, MOST = 64 };
    const ptrdiff_t size = n * n << q;
    double node[NODES], weight[NODES];
    real *x = space, *d = x + size, *y = d + size;
    COMPLEX *t = (COMPLEX *)(y + size), *u = t + n * n, *rest = u + n * n;
    if (jet_of(n, q, a, directions, x) || in_schur_form(n, a, t, u, 1, (real *)rest))
        return 1;
    int times = 0;
    for (real far = 1; times < MOST && far > 0.25; times++) {
        far = 0;
        jet_root(n, q, x, t, u, rest);
        for (ptrdiff_t j = 0; j < n; j++) {
            real sum = 0;
            for (ptrdiff_t i = 0; i <= j; i++)
                sum += cabs(t[i * n + j] - (i == j));
            far = sum > far ? sum : far;
        }
    }
    for (ptrdiff_t i = 0; i < n; i++)
        t[i * (n + 1)] -= 1;
    from_schur_form(n, t, u, x, rest);
    legendre(NODES, node, weight);
    memset(out, 0, (size_t)(n * n) * sizeof(real));
    for (int k = 0; k < NODES; k++) {
        for (ptrdiff_t i = 0; i < size; i++)
            d[i] = node[k] * x[i] + (i < n * n && i % (n + 1) == 0);
        memcpy(y, x, (size_t)size * sizeof(real));
        if (jet_solve(n, q, d, y, (real *)rest))
            return 1;
        for (ptrdiff_t i = 0; i < n * n; i++)
            out[i] += ldexp(weight[k], times) * y[size - n * n + i];
    }
    return 0;
}
