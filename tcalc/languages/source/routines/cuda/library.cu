/* What a library found, noted; arrays row by row are matrices column by column, turned, to it. */
static __global__ void note_info(const int *info, int *failed)
{
    if (*info)
        *failed = 1;
}

/* x = alpha y, the distance between rows of y being yi and of columns yj. */
static __global__ void copy_matrix(ptrdiff_t m, ptrdiff_t n, const real *y, ptrdiff_t yi, ptrdiff_t yj,
                                   real *x)
{
    GRID_STRIDE(entry, m * n)
        x[entry] = y[entry / n * yi + entry % n * yj];
}

static __global__ void unit_matrix(ptrdiff_t n, real *x)
{
    GRID_STRIDE(entry, n * n)
        x[entry] = entry % (n + 1) == 0;
}

static __global__ void clear_above(ptrdiff_t n, real *l)
{
    GRID_STRIDE(entry, n * n)
        l[entry] = entry % n > entry / n ? 0 : l[entry];
}

/* The lower triangle that a library left column by column, row by row, with zeros above. */
static __global__ void turn_lower(ptrdiff_t n, real *l)
{
    GRID_STRIDE(entry, n * n) {
        const ptrdiff_t i = entry / n, j = entry % n;
        if (j < i) {
            l[entry] = l[j * n + i];
            l[j * n + i] = 0;
        }
    }
}

static __global__ void add_turned(ptrdiff_t n, const real *a, real *x)
{
    GRID_STRIDE(entry, n * n)
        x[entry] = (a[entry] + a[entry % n * n + entry / n]) / 2;
}

static __global__ void find_zero(ptrdiff_t n, const real *l, int *failed)
{
    GRID_STRIDE(i, n)
        if (l[i * (n + 1)] == 0)
            *failed = 1;
}

/* How far what are columns to a library are apart, at least their length, for a matrix whose rows are
   `ri` and whose columns are `ci` apart; one of both is 1. */
static int leading(ptrdiff_t m, ptrdiff_t n, ptrdiff_t ri, ptrdiff_t ci)
{
    const ptrdiff_t found = ci != 1 ? ci : ri, least = ci != 1 ? m : n;
    return (int)(found > least ? found : least);
}

/* Do integers of libraries hold these? */
static int held_by_int(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    return m < 0x7fffffff && n < 0x7fffffff && k < 0x7fffffff;
}

/* c = a b for a of m rows and k columns, whose rows are ai and columns ak apart, and b alike; one of
   each two distances is 1. Rows of c are next to each other. */
static int library_product(Device on, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const real *a,
                           ptrdiff_t ai, ptrdiff_t ak, const real *b, ptrdiff_t bk, ptrdiff_t bj,
                           real *c)
{
    const real one = 1, zero = 0;
    if (!m || !n || !held_by_int(m, n, k))
        return m && n;
    if (!k)
        return cudaMemsetAsync(c, 0, (size_t)(m * n) * sizeof(real), on.stream) != cudaSuccess;
    return CUBLAS_GEMM(on.blas, bj != 1 ? CUBLAS_OP_T : CUBLAS_OP_N, ak != 1 ? CUBLAS_OP_T : CUBLAS_OP_N,
                       (int)n, (int)m, (int)k, &one, b, leading(k, n, bk, bj), a, leading(m, k, ai, ak),
                       &zero, c, (int)n) != CUBLAS_STATUS_SUCCESS;
}

/* The same for a stack of them, apart by `as` and `bs`. */
static int library_batched_product(Device on, ptrdiff_t count, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                                   const real *a, ptrdiff_t as, ptrdiff_t ai, ptrdiff_t ak,
                                   const real *b, ptrdiff_t bs, ptrdiff_t bk, ptrdiff_t bj, real *c)
{
    const real one = 1, zero = 0;
    if (!m || !n || !count || !held_by_int(m, n, k) || !held_by_int(count, 0, 0))
        return m && n && count;
    if (!k)
        return cudaMemsetAsync(c, 0, (size_t)(count * m * n) * sizeof(real), on.stream) != cudaSuccess;
    return CUBLAS_GEMM_STACK(on.blas, bj != 1 ? CUBLAS_OP_T : CUBLAS_OP_N,
                             ak != 1 ? CUBLAS_OP_T : CUBLAS_OP_N, (int)n, (int)m, (int)k, &one, b,
                             leading(k, n, bk, bj), bs, a, leading(m, k, ai, ak), as, &zero, c, (int)n,
                             m * n, (int)count) != CUBLAS_STATUS_SUCCESS;
}

/* c = a b where that is symmetric. */
static int library_symmetric_product(Device on, ptrdiff_t n, ptrdiff_t k, const real *a, ptrdiff_t ai,
                                     ptrdiff_t ak, const real *b, ptrdiff_t bk, ptrdiff_t bj, real *c)
{
    return library_product(on, n, n, k, a, ai, ak, b, bk, bj, c);
}

static size_t library_cholesky_space(cusolverDnHandle_t solver, ptrdiff_t n)
{
    int size = 0;
    CUSOLVER_POTRF_SIZE(solver, CUBLAS_FILL_MODE_LOWER, (int)n, NULL, n > 1 ? (int)n : 1, &size);
    return (size_t)size;
}

/* l l' = a, which cuSOLVER finds much faster as a lower triangle than as an upper one. */
static int library_cholesky(Device on, ptrdiff_t n, const real *a, real *l)
{
    const int size = (int)library_cholesky_space(on.solver, n);
    int *info = on.failed + 1;
    if (!n)
        return 0;
    LAUNCH(copy_matrix, blocks(n * n, THREADS), THREADS, on.stream, n, n, a, 1, n, l);
    if (CUSOLVER_POTRF(on.solver, CUBLAS_FILL_MODE_LOWER, (int)n, l, (int)n, on.space, size, info))
        return 1;
    LAUNCH(turn_lower, blocks(n * n, THREADS), THREADS, on.stream, n, l);
    LAUNCH(note_info, 1, 1, on.stream, info, on.failed);
    return 0;
}

/* x = l^-1 for the lower triangle of l; a zero on the diagonal is refused. */
static int library_tri_inverse(Device on, ptrdiff_t n, const real *l, real *x)
{
    const real one = 1;
    if (!n)
        return 0;
    LAUNCH(find_zero, blocks(n, THREADS), THREADS, on.stream, n, l, on.failed);
    LAUNCH(unit_matrix, blocks(n * n, THREADS), THREADS, on.stream, n, x);
    return CUBLAS_TRSM(on.blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                       CUBLAS_DIAG_NON_UNIT, (int)n, (int)n, &one, l, (int)n, x,
                       (int)n) != CUBLAS_STATUS_SUCCESS;
}

/* x = (l l')^-1 x for r vectors, each next to itself in memory. */
static int solve_factored(Device on, ptrdiff_t n, ptrdiff_t r, const real *l, real *x)
{
    const real one = 1;
    for (int turn = 0; n && turn < 2; turn++)
        if (CUBLAS_TRSM(on.blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                        turn ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, (int)n, (int)r, &one, l,
                        (int)n, x, (int)n) != CUBLAS_STATUS_SUCCESS)
            return 1;
    return 0;
}

/* x = l^-1 x, or that of the transposed matrix, for x of r columns; a zero on l's diagonal is refused.
   One column is one to cuBLAS too, which takes many times as long for one row. */
static int library_solve_lower(Device on, ptrdiff_t n, ptrdiff_t r, const real *l, int transposed,
                               real *x)
{
    const real one = 1;
    if (!n || !r)
        return 0;
    LAUNCH(find_zero, blocks(n, THREADS), THREADS, on.stream, n, l, on.failed);
    if (r == 1)
        return CUBLAS_TRSM(on.blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                           transposed ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, (int)n, 1, &one,
                           l, (int)n, x, (int)n) != CUBLAS_STATUS_SUCCESS;
    return CUBLAS_TRSM(on.blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER,
                       transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, (int)r, (int)n, &one,
                       l, (int)n, x, (int)r) != CUBLAS_STATUS_SUCCESS;
}

/* x = (l l')^-1 x for x of r columns. */
static int library_solve_definite(Device on, ptrdiff_t n, ptrdiff_t r, const real *l, real *x)
{
    return library_solve_lower(on, n, r, l, 0, x) || library_solve_lower(on, n, r, l, 1, x);
}

/* x = (l l')^-1; `space` holds a matrix. */
static int library_inverse_of_factor(Device on, ptrdiff_t n, const real *l, real *x, real *space)
{
    if (!n)
        return 0;
    LAUNCH(find_zero, blocks(n, THREADS), THREADS, on.stream, n, l, on.failed);
    LAUNCH(unit_matrix, blocks(n * n, THREADS), THREADS, on.stream, n, space);
    if (solve_factored(on, n, n, l, space))
        return 1;
    LAUNCH(add_turned, blocks(n * n, THREADS), THREADS, on.stream, n, space, x);
    return 0;
}

/* Half of the symmetric matrix with this lower half. */
static __global__ void half_turned(ptrdiff_t n, const real *a, real *x)
{
    GRID_STRIDE(entry, n * n) {
        const ptrdiff_t i = entry / n, j = entry % n;
        x[entry] = (i < j ? a[j * n + i] : a[entry]) / 2;
    }
}

/* l^-T (lower half of l' g, made symmetric) l^-1 / 2; a zero on the diagonal is refused. */
static int library_cholesky_pullback(Device on, ptrdiff_t n, const real *l, const real *g, real *out,
                                     real *space)
{
    const real one = 1;
    real *lower = space + n * n;
    if (!n)
        return 0;
    LAUNCH(find_zero, blocks(n, THREADS), THREADS, on.stream, n, l, on.failed);
    LAUNCH(copy_matrix, blocks(n * n, THREADS), THREADS, on.stream, n, n, l, n, 1, lower);
    LAUNCH(clear_above, blocks(n * n, THREADS), THREADS, on.stream, n, lower);
    if (library_product(on, n, n, n, lower, 1, n, g, n, 1, space))
        return 1;
    LAUNCH(half_turned, blocks(n * n, THREADS), THREADS, on.stream, n, space, out);
    for (int turn = 0; turn < 2; turn++)
        if (CUBLAS_TRSM(on.blas, turn ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER,
                        turn ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, (int)n, (int)n, &one,
                        lower, (int)n, out, (int)n) != CUBLAS_STATUS_SUCCESS)
            return 1;
    return 0;
}

static size_t library_inv_space(cusolverDnHandle_t solver, ptrdiff_t n)
{
    int size = 0;
    const int rows = n > 1 ? (int)n : 1;
    CUSOLVER_GETRF_SIZE(solver, rows, rows, NULL, rows, &size);
    return (size_t)size;
}

/* Elimination in `space`, behind which the exchanges of rows stand. */
static int eliminate_turned(Device on, ptrdiff_t n, const real *a, real *space)
{
    LAUNCH(copy_matrix, blocks(n * n, THREADS), THREADS, on.stream, n, n, a, n, 1, space);
    return CUSOLVER_GETRF(on.solver, (int)n, (int)n, space, (int)n, on.space, (int *)(space + n * n),
                          on.failed + 1) != CUSOLVER_STATUS_SUCCESS;
}

/* x = a^-1; `space` holds n (n + 1) numbers. */
static int library_inv(Device on, ptrdiff_t n, const real *a, real *x, real *space)
{
    if (!n)
        return 0;
    if (eliminate_turned(on, n, a, space))
        return 1;
    LAUNCH(note_info, 1, 1, on.stream, on.failed + 1, on.failed);
    LAUNCH(unit_matrix, blocks(n * n, THREADS), THREADS, on.stream, n, x);
    return CUSOLVER_GETRS(on.solver, CUBLAS_OP_N, (int)n, (int)n, space, (int)n,
                          (const int *)(space + n * n), x, (int)n, on.failed + 1) !=
           CUSOLVER_STATUS_SUCCESS;
}

/* The sign and the logarithm of the absolute value of a determinant, by one block. */
static __global__ void read_determinant(ptrdiff_t n, const real *lu, const int *pivots, int what,
                                        real *found)
{
    real sign = 1, logarithm = 0;
    THREAD_STRIDE(i, n) {
        const real pivot = lu[i * (n + 1)];
        sign *= (pivots[i] == i + 1 ? 1 : -1) * (pivot > 0 ? 1 : pivot < 0 ? -1 : pivot);
        logarithm += log(fabs(pivot));
    }
    sign = block_fold(sign, [](real a, real b) { return a * b; });
    logarithm = block_sum(logarithm);
    if (sign == 0)
        logarithm = -INFINITY;
    if (threadIdx.x == 0)
        *found = what == 0 ? sign * exp(logarithm) : what == 1 ? sign : logarithm;
}

static int determinant(Device on, ptrdiff_t n, const real *a, real *found, real *space, int what)
{
    if (n && eliminate_turned(on, n, a, space))
        return 1;
    LAUNCH(read_determinant, 1, THREADS, on.stream, n, space, (const int *)(space + n * n), what,
              found);
    return 0;
}

static size_t library_det_space(cusolverDnHandle_t solver, ptrdiff_t n)
{
    return library_inv_space(solver, n);
}

static int library_det(Device on, ptrdiff_t n, const real *a, real *found, real *space)
{
    return determinant(on, n, a, found, space, 0);
}

static size_t library_det_sign_space(cusolverDnHandle_t solver, ptrdiff_t n)
{
    return library_inv_space(solver, n);
}

static int library_det_sign(Device on, ptrdiff_t n, const real *a, real *found, real *space)
{
    return determinant(on, n, a, found, space, 1);
}

static size_t library_logdet_space(cusolverDnHandle_t solver, ptrdiff_t n)
{
    return library_inv_space(solver, n);
}

static int library_logdet(Device on, ptrdiff_t n, const real *a, real *found, real *space)
{
    return determinant(on, n, a, found, space, 2);
}

static size_t library_eigh_space(cusolverDnHandle_t solver, ptrdiff_t n)
{
    int size = 0;
    CUSOLVER_SYEVD_SIZE(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, (int)n, NULL,
                        n > 1 ? (int)n : 1, NULL, &size);
    return (size_t)size;
}

/* v diag(w) v' = (a + a') / 2, w ascending. `space` holds a matrix. */
static int library_eigh(Device on, ptrdiff_t n, const real *a, real *w, real *v, real *space)
{
    const int size = (int)library_eigh_space(on.solver, n);
    int *info = on.failed + 1;
    if (!n)
        return 0;
    LAUNCH(add_turned, blocks(n * n, THREADS), THREADS, on.stream, n, a, space);
    if (CUSOLVER_SYEVD(on.solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, (int)n, space,
                       (int)n, w, on.space, size, info))
        return 1;
    LAUNCH(note_info, 1, 1, on.stream, info, on.failed);
    LAUNCH(copy_matrix, blocks(n * n, THREADS), THREADS, on.stream, n, n, space, 1, n, v);
    return 0;
}

/* A wide matrix is a tall one column by column, as cuSOLVER wants it; both are copied in front. */
static size_t library_svd_space(cusolverDnHandle_t solver, ptrdiff_t m, ptrdiff_t n)
{
    int size = 0;
    CUSOLVER_GESVD_SIZE(solver, (int)(m < n ? n : m), (int)(m < n ? m : n), &size);
    return (size_t)(m * n) + (size_t)size;
}

static __global__ void find_nan(ptrdiff_t n, const real *a, int *failed)
{
    GRID_STRIDE(i, n)
        if (!isfinite(a[i]))
            *failed = 1;
}

/* u diag(s) vh = a, s descending; u has m x k and vh k x n entries for the smaller one k of m and n.
   `space` holds k x k and k x max(m, n) numbers. */
static int library_svd(Device on, ptrdiff_t m, ptrdiff_t n, const real *a, real *u, real *s, real *vh,
                       real *space)
{
    const ptrdiff_t tall = m < n ? n : m, k = m < n ? m : n;
    const int size = (int)(library_svd_space(on.solver, m, n) - (size_t)(m * n));
    real *copy = on.space, *work = copy + m * n, *left = space + k * k, *right = space;
    int *info = on.failed + 1;
    if (!k)
        return 0;
    LAUNCH(find_nan, blocks(m * n, THREADS), THREADS, on.stream, m * n, a, on.failed);
    if (m < n)
        LAUNCH(copy_matrix, blocks(m * n, THREADS), THREADS, on.stream, m, n, a, n, 1, copy);
    else
        LAUNCH(copy_matrix, blocks(m * n, THREADS), THREADS, on.stream, n, m, a, 1, n, copy);
    if (CUSOLVER_GESVD(on.solver, 'S', 'S', (int)tall, (int)k, copy, (int)tall, s, left, (int)tall,
                       right, (int)k, work, size, NULL, info))
        return 1;
    LAUNCH(note_info, 1, 1, on.stream, info, on.failed);
    if (m < n) {
        LAUNCH(copy_matrix, blocks(n * k, THREADS), THREADS, on.stream, k, n, left, n, 1, vh);
        LAUNCH(copy_matrix, blocks(m * k, THREADS), THREADS, on.stream, m, k, right, k, 1, u);
    } else {
        LAUNCH(copy_matrix, blocks(m * k, THREADS), THREADS, on.stream, m, k, left, 1, m, u);
        LAUNCH(copy_matrix, blocks(n * k, THREADS), THREADS, on.stream, k, n, right, 1, k, vh);
    }
    return 0;
}

static size_t library_pinv_space(cusolverDnHandle_t solver, ptrdiff_t m, ptrdiff_t n)
{
    return library_svd_space(solver, m, n);
}

static __global__ void divide_columns(ptrdiff_t m, ptrdiff_t k, real least, const real *s, real *u)
{
    GRID_STRIDE(entry, m * k)
        u[entry] *= s[entry % k] > least * s[0] ? 1 / s[entry % k] : 0;
}

/* x = a^+; `space` holds u, s, vh and what svd needs. */
static int library_pinv(Device on, ptrdiff_t m, ptrdiff_t n, const real *a, real *x, real *space)
{
    const ptrdiff_t k = m < n ? m : n, length = m < n ? n : m;
    real *u = space, *s = u + m * k, *vh = s + k;
    if (library_svd(on, m, n, a, u, s, vh, vh + k * n))
        return 1;
    LAUNCH(divide_columns, blocks(m * k, THREADS), THREADS, on.stream, m, k, length * REAL_EPSILON, s,
              u);
    return library_product(on, n, m, k, vh, 1, n, u, 1, k, x);
}

static size_t library_lq_space(cusolverDnHandle_t solver, ptrdiff_t m, ptrdiff_t n)
{
    int factor = 0, vectors = 0;
    const int k = (int)(m < n ? m : n), rows = n > 1 ? (int)n : 1;
    CUSOLVER_GEQRF_SIZE(solver, (int)n, (int)m, NULL, rows, &factor);
    CUSOLVER_ORGQR_SIZE(solver, (int)n, k, k, NULL, rows, NULL, &vectors);
    return (size_t)(m * n + 2 * k) + (size_t)(factor > vectors ? factor : vectors);
}

/* l of what geqrf left, its diagonal not negative, and the signs of its columns. */
static __global__ void read_lower(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const real *qr, real *l)
{
    GRID_STRIDE(entry, m * k) {
        const ptrdiff_t i = entry / k, j = entry % k;
        l[entry] = j > i ? 0 : qr[j * (n + 1)] < 0 ? -qr[i * n + j] : qr[i * n + j];
    }
}

static __global__ void read_signs(ptrdiff_t n, ptrdiff_t k, const real *qr, real *signs)
{
    GRID_STRIDE(i, k)
        signs[i] = qr[i * (n + 1)] < 0 ? -1 : 1;
}

static __global__ void sign_rows(ptrdiff_t k, ptrdiff_t n, const real *signs, const real *rows, real *q)
{
    GRID_STRIDE(entry, k * n)
        q[entry] = signs[entry / n] * rows[entry];
}

/* l q = a with orthonormal rows of q and a diagonal of l that is not negative; l has n columns, or m
   where a has fewer rows. */
static int library_lq(Device on, ptrdiff_t m, ptrdiff_t n, const real *a, real *l, real *q)
{
    const ptrdiff_t k = m < n ? m : n;
    const int size = (int)(library_lq_space(on.solver, m, n) - (size_t)(m * n + 2 * k));
    real *copy = on.space, *scales = copy + m * n, *signs = scales + k, *work = signs + k;
    int *info = on.failed + 1;
    if (!k)
        return 0;
    LAUNCH(copy_matrix, blocks(m * n, THREADS), THREADS, on.stream, m, n, a, n, 1, copy);
    if (CUSOLVER_GEQRF(on.solver, (int)n, (int)m, copy, (int)n, scales, work, size, info))
        return 1;
    LAUNCH(read_lower, blocks(m * k, THREADS), THREADS, on.stream, m, n, k, copy, l);
    LAUNCH(copy_matrix, blocks(k * n, THREADS), THREADS, on.stream, k, n, copy, n, 1, q);
    LAUNCH(read_signs, blocks(k, THREADS), THREADS, on.stream, n, k, copy, signs);
    if (CUSOLVER_ORGQR(on.solver, (int)n, (int)k, (int)k, q, (int)n, scales, work, size, info))
        return 1;
    LAUNCH(copy_matrix, blocks(k * n, THREADS), THREADS, on.stream, k, n, q, n, 1, copy);
    LAUNCH(sign_rows, blocks(k * n, THREADS), THREADS, on.stream, k, n, signs, copy, q);
    return 0;
}

/* Does a come before b, an equal one too if `equal`? Those that are no numbers come last. */
template <typename T> FUNCTION int stands_before(T a, T b, int equal)
{
    return a != a ? b != b && equal : a < b || b != b || (equal && a == b);
}

/* Runs of places in ascending order, merged two by two: each finds its rank in the other run. */
template <typename T>
static __global__ void merge_runs(ptrdiff_t n, ptrdiff_t width, const T *keys, const ptrdiff_t *from,
                                  ptrdiff_t *to)
{
    GRID_STRIDE(i, n) {
        const ptrdiff_t place = width ? from[i] : i, run = width ? i / width : 0;
        if (!width) {
            to[i] = i;
            continue;
        }
        const ptrdiff_t first = run / 2 * 2 * width, other = run % 2 ? first : first + width;
        const ptrdiff_t end = other + width < n ? other + width : n;
        ptrdiff_t low = other, high = end > other ? end : other;
        const ptrdiff_t begin = low;
        while (low < high) {
            const ptrdiff_t middle = low + (high - low) / 2;
            if (stands_before(keys[from[middle]], keys[place], run % 2 != 0))
                low = middle + 1;
            else
                high = middle;
        }
        to[first + (i - run * width) + (low - begin)] = place;
    }
}

/* The places of entries in ascending order, equal ones as they stand: merges on the stream. */
template <typename T>
static int sorted_places(Device on, ptrdiff_t n, const T *keys, ptrdiff_t *order, ptrdiff_t *space)
{
    int passes = 0;
    for (ptrdiff_t width = 1; width < n; width *= 2)
        passes++;
    ptrdiff_t *from = passes % 2 ? space : order, *to = passes % 2 ? order : space;
    LAUNCH((merge_runs<T>), blocks(n, THREADS), THREADS, on.stream, n, 0, keys, to, from);
    for (ptrdiff_t width = 1; width < n; width *= 2) {
        LAUNCH((merge_runs<T>), blocks(n, THREADS), THREADS, on.stream, n, width, keys, from, to);
        ptrdiff_t *last = from;
        from = to;
        to = last;
    }
    return 0;
}

static int library_row_order(Device on, ptrdiff_t n, const real *x, ptrdiff_t *order, ptrdiff_t *space)
{
    return sorted_places(on, n, x, order, space);
}

static int library_group_order(Device on, ptrdiff_t n, const ptrdiff_t *keys, ptrdiff_t *order,
                               ptrdiff_t *space)
{
    return sorted_places(on, n, keys, order, space);
}
