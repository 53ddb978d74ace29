/* Products of matrices by pieces that a library multiplies as they lie.

   What stands before has `whole`, a product by that library: out = alpha x y + beta out, where x is
   m by k and y is k by n. */

/* Is a product of m rows quicker by pieces: is it a large one, or are its operands `crossed`, x by
   rows and y by columns?

   PIECE are the most multiplications of a piece, DEEP and THIN its extents. */
enum { PIECE = 1000000, DEEP = 128, THIN = 32 };
static inline int in_pieces(double work, int crossed, ptrdiff_t m)
{
    return work > PIECE || (crossed && m > THIN);
}

/* One of the fewest parts of equal length that are not longer than `most`. */
static inline ptrdiff_t part_of(ptrdiff_t extent, ptrdiff_t most)
{
    ptrdiff_t count = (extent + most - 1) / most;
    return (extent + count - 1) / count;
}

/* The product by pieces that OpenBLAS multiplies as they lie: its way of rearranging larger ones
   first costs more. Only those of y, a few columns each, are copied. */
static inline void pieces(real alpha, const real *x, ptrdiff_t xr, ptrdiff_t xc, const real *y,
                          ptrdiff_t yr, ptrdiff_t yc, real beta, real *out, ptrdiff_t ldo,
                          ptrdiff_t m, ptrdiff_t k, ptrdiff_t n)
{
    real held[DEEP * THIN];
    ptrdiff_t deep = part_of(k, DEEP), high = part_of(m, PIECE / (deep * THIN));
    for (ptrdiff_t j = 0; j < n; j += THIN)
        for (ptrdiff_t p = 0; p < k; p += deep) {
            ptrdiff_t columns = n - j < THIN ? n - j : THIN, depth = k - p < deep ? k - p : deep;
            const real *piece = y + p * yr + j * yc;
            for (ptrdiff_t a = 0; a < depth && yc == 1; a++)
                memcpy(held + a * columns, piece + a * yr, (size_t)columns * sizeof(real));
            for (ptrdiff_t b = 0; b < columns && yc != 1; b++)
                for (ptrdiff_t a = 0; a < depth; a++)
                    held[a * columns + b] = piece[a * yr + b * yc];
            for (ptrdiff_t i = 0; i < m; i += high)
                whole(alpha, x + i * xr + p * xc, xr, xc, held, columns, 1, p ? 1 : beta,
                      out + i * ldo + j, ldo, m - i < high ? m - i : high, depth, columns);
        }
}
