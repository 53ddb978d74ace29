/* The next tuple of so many places below n, the last one runs first; 0: there is none. */
static int next_places(ptrdiff_t n, int count, ptrdiff_t *place)
{
    for (int k = count; k-- > 0;) {
        if (++place[k] < n)
            return 1;
        place[k] = 0;
    }
    return 0;
}

static void exchange(int *order, int i, int j)
{
    const int moved = order[i];
    order[i] = order[j];
    order[j] = moved;
}

/* The next order of so many numbers, as words are ordered; 0: there is none. */
static int next_order(int count, int *order)
{
    int rising = count - 1, larger_one = count - 1;
    while (rising > 0 && order[rising - 1] > order[rising])
        rising--;
    if (rising <= 0)
        return 0;
    while (order[larger_one] < order[rising - 1])
        larger_one--;
    exchange(order, rising - 1, larger_one);
    for (int low = rising, high = count - 1; low < high; low++, high--)
        exchange(order, low, high);
    return 1;
}

/* Adds to `out` what orders of these places contribute to the derivative of an adjugate at a diagonal:
   signed products of entries of directions. */
static void add_minor(ptrdiff_t n, int q, const real *directions, const ptrdiff_t *place, real others,
                      real *out)
{
    enum { MOST = 16 };
    int column[MOST + 1];
    for (int row = 0; row <= q; row++)
        column[row] = row;
    for (int more = 1; more; more = next_order(q + 1, column)) {
        real term = others;
        for (int row = 0; row < q; row++)
            term *= directions[row * n * n + place[row] * n + place[column[row]]];
        for (int row = 0; row <= q; row++)
            for (int before = 0; before < row; before++)
                term = column[before] > column[row] ? -term : term;
        out[place[column[q]] * n + place[q]] += term;
    }
}

/* The same for all tuples of different places. */
static void add_minors(ptrdiff_t n, int q, const real *s, const real *directions, real *out)
{
    enum { MOST = 16 };
    ptrdiff_t place[MOST + 1] = {0};
    for (int more = n > 0; more; more = next_places(n, q + 1, place)) {
        real others = 1;
        for (int k = 0; k <= q; k++)
            for (int before = 0; before < k; before++)
                others = place[before] == place[k] ? 0 : others;
        for (ptrdiff_t j = 0; others != 0 && j < n; j++) {
            int taken = 0;
            for (int k = 0; k <= q; k++)
                taken = taken || place[k] == j;
            others *= taken ? 1 : s[j];
        }
        if (others != 0)
            add_minor(n, q, directions, place, others, out);
    }
}

/* The adjugate's derivative along q directions, itself where q is 0: by singular values. `space` holds
   q + 5 matrices and n numbers. */
static int adj_frechet(ptrdiff_t n, int q, const real *a, const real *const *directions, real *out,
                       real *space)
{
    enum { MOST = 16 };
    real *u = space, *vh = u + n * n, *inner = vh + n * n, *turned = inner + n * n;
    real *s = turned + q * n * n, *rest = s + n, sign_u, sign_v;
    if (q > MOST || svd(n, n, a, u, s, vh, rest))
        return 1;
    for (int k = 0; k < q; k++) {
        product(n, n, n, u, 1, n, directions[k], n, 1, rest);
        product(n, n, n, rest, n, 1, vh, 1, n, turned + k * n * n);
    }
    memset(inner, 0, (size_t)(n * n) * sizeof(real));
    add_minors(n, q, s, turned, inner);
    det_sign(n, u, &sign_u, rest);
    det_sign(n, vh, &sign_v, rest);
    product(n, n, n, vh, 1, n, inner, n, 1, rest);
    multiply(n, n, n, sign_u * sign_v, rest, n, 1, u, 1, n, 0, out, n);
    return 0;
}
