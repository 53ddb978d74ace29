/* Adds to `out` what permutations of places contribute to the derivative of an adjugate at a diagonal:
   signed products of entries of directions, rows from `row` on, columns that are not `taken`. */
static void add_minor(ptrdiff_t n, int q, const real *directions, const ptrdiff_t *place, int row,
                      unsigned taken, real term, real *out)
{
    for (int column = 0; term != 0 && column <= q; column++) {
        if (taken >> column & 1)
            continue;
        real found = term;
        for (int above = column + 1; above <= q; above++)
            found = taken >> above & 1 ? -found : found;
        if (row == q)
            out[place[column] * n + place[q]] += found;
        else
            add_minor(n, q, directions, place, row + 1, taken | 1u << column,
                      found * directions[row * n * n + place[row] * n + place[column]], out);
    }
}

/* The same for all tuples of different places, of which k are given. */
static void add_minors(ptrdiff_t n, int q, const real *s, const real *directions, ptrdiff_t *place,
                       int k, real *out)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        int other_place = 1;
        for (int other = 0; other < k; other++)
            other_place = other_place && place[other] != i;
        if (!other_place)
            continue;
        place[k] = i;
        if (k < q) {
            add_minors(n, q, s, directions, place, k + 1, out);
            continue;
        }
        real others = 1;
        for (ptrdiff_t j = 0; j < n; j++) {
            int free = 1;
            for (int other = 0; other <= q; other++)
                free = free && place[other] != j;
            others *= free ? s[j] : 1;
        }
        add_minor(n, q, directions, place, 0, 0, others, out);
    }
}

/* The adjugate's derivative along q directions, itself where q is 0: by singular values. `space` holds
   q + 5 matrices and n numbers. */
static int adj_frechet(ptrdiff_t n, int q, const real *a, const real *const *directions, real *out,
                       real *space)
{
    enum { MOST = 16 };
    ptrdiff_t place[MOST + 1];
    real *u = space, *vh = u + n * n, *inner = vh + n * n, *turned = inner + n * n;
    real *s = turned + q * n * n, *rest = s + n, sign_u, sign_v;
    if (q > MOST || svd(n, n, a, u, s, vh, rest))
        return 1;
    for (int k = 0; k < q; k++) {
        product(n, n, n, u, 1, n, directions[k], n, 1, rest);
        product(n, n, n, rest, n, 1, vh, 1, n, turned + k * n * n);
    }
    memset(inner, 0, (size_t)(n * n) * sizeof(real));
    add_minors(n, q, s, turned, place, 0, inner);
    det_sign(n, u, &sign_u, rest);
    det_sign(n, vh, &sign_v, rest);
    product(n, n, n, vh, 1, n, inner, n, 1, rest);
    multiply(n, n, n, sign_u * sign_v, rest, n, 1, u, 1, n, 0, out, n);
    return 0;
}
