/* The integral of g over a simplex of this many axes (Hermite and Genocchi), from its first corner on:
   each axis by Gauss and Legendre, whose nodes a product of the further ones follows. */
static double simplex_integral(real (*g)(real), int axes, const real *x, int count, const double *node,
                               const double *weight)
{
    double sum = 0;
    ptrdiff_t points = 1;
    for (int axis = 0; axis < axes; axis++)
        points *= count;
    for (ptrdiff_t point = 0; point < points; point++) {
        double at = x[0], share = 1, factor = 1;
        ptrdiff_t rest = point;
        for (int axis = 0; axis < axes; axis++, rest /= count) {
            factor *= weight[rest % count] * share;
            share *= node[rest % count];
            at += (x[axis + 1] - x[axis]) * share;
        }
        sum += factor * g(at);
    }
    return sum;
}

/* The divided difference over ascending points, by the recursion or as the integral of a derivative:
   whichever has the smaller bound of its error. */
static real divided_difference(int order, real (*const *g)(real), const real *x)
{
    enum { MOST = 16, NODES = 12 };
    static const int counts[] = {1, 12, 9, 8, 6};
    double node[NODES], weight[NODES], d[MOST + 1], bound[MOST + 1];
    for (int i = 0; i <= order; i++) {
        d[i] = g[0](x[i]);
        bound[i] = REAL_EPSILON * fabs(d[i]);
    }
    for (int j = 1; j <= order; j++)
        for (int i = 0; i + j <= order; i++) {
            const double gap = x[i + j] - x[i];
            d[i] = (d[i + 1] - d[i]) / gap;
            bound[i] = (bound[i + 1] + bound[i]) / gap + REAL_EPSILON * fabs(d[i]);
            if (bound[i] <= 9 * REAL_EPSILON * fabs(d[i]) && isfinite(d[i]))
                continue;
            double found[2];
            for (int k = 0; k < 2; k++) {
                const int count = counts[j < 4 ? j : 4] - k;
                legendre(count, node, weight);
                found[k] = simplex_integral(g[j], j, x + i, count, node, weight);
            }
            const double doubt = fabs(found[0] - found[1]) + 2 * REAL_EPSILON * fabs(found[0]);
            const double apart = fabs(found[0] - d[i]); /* far where all nodes miss a peak */
            if ((doubt < bound[i] && apart <= 1e3 * bound[i]) || !isfinite(d[i])) {
                d[i] = found[0];
                bound[i] = doubt;
            }
        }
    return d[0];
}

/* The divided differences over all tuples of q + 1 of n ascending points: those of ascending places,
   which come before others of the same points. */
static void spectral_table(ptrdiff_t n, int q, real (*const *g)(real), const real *w, real *table)
{
    enum { MOST = 16 };
    ptrdiff_t count = n, place[MOST + 1];
    real x[MOST + 1];
    for (int k = 0; k < q; k++)
        count *= n;
    for (ptrdiff_t at = 0; at < count; at++) {
        ptrdiff_t rest = at, sorted = 0;
        for (int k = 0; k <= q; k++, rest /= n) {
            int to = k;
            for (; to > 0 && place[to - 1] > rest % n; to--)
                place[to] = place[to - 1];
            place[to] = rest % n;
        }
        for (int k = 0; k <= q; k++) {
            sorted = sorted * n + place[k];
            x[k] = w[place[k]];
        }
        table[at] = sorted == at ? divided_difference(q, g, x) : table[sorted];
    }
}

/* Adds to `out` the products of divided differences and entries of directions in one order. */
static void add_paths(ptrdiff_t n, int q, const real *table, const real *directions, const int *order,
                      real *out)
{
    enum { MOST = 16 };
    ptrdiff_t place[MOST + 1] = {0};
    for (int more = n > 0; more; more = next_places(n, q + 1, place)) {
        real term = *table++;
        for (int k = 0; k < q; k++)
            term *= directions[order[k] * n * n + place[k] * n + place[k + 1]];
        out[place[0] * n + place[q]] += term;
    }
}

/* The derivative of v g(diag w) v' along q directions, itself where q is 0; g has its derivatives.
   `space` holds q + 2 matrices and n^(q + 1) numbers. */
static int spectral(ptrdiff_t n, int q, real (*const *g)(real), const real *w, const real *v,
                    const real *const *directions, real *out, real *space)
{
    enum { MOST = 16 };
    int order[MOST + 1];
    real *inner = space, *rest = inner + n * n, *turned = rest + n * n, *table = turned + q * n * n;
    if (q > MOST)
        return 1;
    memset(inner, 0, (size_t)(n * n) * sizeof(real));
    for (ptrdiff_t i = 0; q == 0 && i < n; i++)
        inner[i * (n + 1)] = g[0](w[i]);
    for (int k = 0; k < q; k++) {
        for (ptrdiff_t i = 0; i < n * n; i++)
            inner[i] = (directions[k][i] + directions[k][i % n * n + i / n]) / 2;
        product(n, n, n, v, 1, n, inner, n, 1, rest);
        product(n, n, n, rest, n, 1, v, n, 1, turned + k * n * n);
    }
    if (q > 0) {
        spectral_table(n, q, g, w, table);
        memset(inner, 0, (size_t)(n * n) * sizeof(real));
        for (int k = 0; k < q; k++)
            order[k] = k;
        for (int more = 1; more; more = next_order(q, order))
            add_paths(n, q, table, turned, order, inner);
    }
    product(n, n, n, v, n, 1, inner, n, 1, rest);
    product(n, n, n, rest, n, 1, v, 1, n, out);
    return 0;
}

/* The trace of g at a matrix with these eigenvalues. */
static real spectral_trace(ptrdiff_t n, real (*const *g)(real), const real *w)
{
    real sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += g[0](w[i]);
    return sum;
}
