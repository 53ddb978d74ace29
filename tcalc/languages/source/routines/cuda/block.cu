/* Pointers as one argument. */
template <typename T> struct Listed {
    T items[17];
    __host__ __device__ operator const T *() const { return items; }
};

/* The numbers of a block's threads combined, always in one order; all threads get it. */
template <typename T, typename F> static __device__ T block_fold(T mine, F combined)
{
    __shared__ T held[THREADS];
    __syncthreads();
    held[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            held[threadIdx.x] = combined(held[threadIdx.x], held[threadIdx.x + half]);
        __syncthreads();
    }
    return held[0];
}

template <typename T> static __device__ T block_sum(T mine)
{
    return block_fold(mine, [](T a, T b) { return a + b; });
}

/* The sum over a block, kept until `add_up` adds all of them. */
template <typename T> static __device__ void keep_sum(T mine, T *sums)
{
    const T found = block_sum(mine);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = found;
}

/* What blocks have kept, added to a number, or in its place. */
template <typename T> static __global__ void add_up(ptrdiff_t count, const T *sums, T *number, int onto)
{
    T mine = 0;
    THREAD_STRIDE(i, count)
        mine += sums[i];
    const T found = block_sum(mine);
    if (threadIdx.x == 0)
        *number = onto ? *number + found : found;
}

/* A matrix was refused. */
static __device__ void note(int status, int *failed)
{
    if (status)
        *failed = 1;
}

static __device__ real block_max(real mine)
{
    return block_fold(mine, [](real a, real b) { return b > a || isnan(b) ? b : a; });
}

static __device__ real block_row_max(ptrdiff_t n, const real *x)
{
    real mine = -INFINITY;
    THREAD_STRIDE(i, n)
        mine = x[i] > mine || isnan(x[i]) ? x[i] : mine;
    return block_max(mine);
}

static __device__ real block_row_min(ptrdiff_t n, const real *x)
{
    real mine = -INFINITY;
    THREAD_STRIDE(i, n)
        mine = -x[i] > mine || isnan(x[i]) ? -x[i] : mine;
    return -block_max(mine);
}

/* 1 over how many entries are this one, and 0 for all others. */
static __device__ void block_row_shares(ptrdiff_t n, const real *x, real top, real *out)
{
    real mine = 0;
    THREAD_STRIDE(i, n)
        mine += x[i] == top;
    const real count = block_sum(mine);
    THREAD_STRIDE(i, n)
        out[i] = (x[i] == top) / count;
    __syncthreads();
}

static __device__ void block_row_hardmax(ptrdiff_t n, const real *x, real *out)
{
    block_row_shares(n, x, block_row_max(n, x), out);
}

static __device__ void block_row_hardmin(ptrdiff_t n, const real *x, real *out)
{
    block_row_shares(n, x, block_row_min(n, x), out);
}

static __device__ real block_row_prod(ptrdiff_t n, const real *x)
{
    real mine = 1;
    THREAD_STRIDE(i, n)
        mine *= x[i];
    return block_fold(mine, [](real a, real b) { return a * b; });
}

/* The Euclidean norm, over a power of two near the largest entry: squares stay in range. */
static __device__ real block_norm2(ptrdiff_t n, const real *x)
{
    real mine = 0;
    int power;
    THREAD_STRIDE(i, n)
        mine = fabs(x[i]) > mine || isnan(x[i]) ? fabs(x[i]) : mine;
    const real top = block_max(mine);
    if (top == 0 || !isfinite(top))
        return top;
    frexp(top, &power);
    const real scale = ldexp((real)1, -power);
    mine = 0;
    THREAD_STRIDE(i, n)
        mine += (x[i] * scale) * (x[i] * scale);
    return sqrt(block_sum(mine)) / scale;
}

/* Of powers of the entries over the largest one, which stay in range. */
static __device__ real block_norm_of_order(ptrdiff_t n, const real *x, real order)
{
    real mine = 0;
    THREAD_STRIDE(i, n)
        mine = fabs(x[i]) > mine || isnan(x[i]) ? fabs(x[i]) : mine;
    real top = block_max(mine);
    if (top == 0 || !isfinite(top))
        top = 1;
    mine = 0;
    THREAD_STRIDE(i, n)
        mine += pow(fabs(x[i]) / top, order);
    return pow(block_sum(mine), 1 / order) * top;
}

static __device__ real block_logsumexp(ptrdiff_t n, const real *x)
{
    real mine = 0;
    const real top = block_row_max(n, x);
    if (!isfinite(top))
        return top;
    THREAD_STRIDE(i, n)
        mine += exp(x[i] - top);
    return top + log(block_sum(mine));
}

/* log(sum(b * exp(x))) */
static __device__ real block_weighted_logsumexp(ptrdiff_t n, const real *x, const real *b)
{
    real mine = -INFINITY;
    THREAD_STRIDE(i, n)
        if (b[i] != 0)
            mine = x[i] > mine || isnan(x[i]) ? x[i] : mine;
    real top = block_max(mine);
    if (!isfinite(top))
        top = 0;
    mine = 0;
    THREAD_STRIDE(i, n)
        mine += b[i] == 0 ? 0 : b[i] * exp(x[i] - top);
    return top + log(block_sum(mine));
}

/* The first place of the largest number times a sign, or of one that is no number. */
static __device__ ptrdiff_t row_first(ptrdiff_t n, const real *x, real sign)
{
    ptrdiff_t mine = -1;
    const auto first = [=](ptrdiff_t i, ptrdiff_t j) {
        if (i < 0 || j < 0)
            return i < 0 ? j : i;
        const real a = sign * x[i], b = sign * x[j];
        if (isnan(a) || isnan(b))
            return isnan(a) && (!isnan(b) || i < j) ? i : j;
        return a > b || (a == b && i < j) ? i : j;
    };
    THREAD_STRIDE(i, n)
        mine = first(mine, i);
    return block_fold(mine, first);
}

static __device__ ptrdiff_t block_row_argmax(ptrdiff_t n, const real *x)
{
    return row_first(n, x, 1);
}

static __device__ ptrdiff_t block_row_argmin(ptrdiff_t n, const real *x)
{
    return row_first(n, x, -1);
}

/* Sums of all entries up to each: every thread adds up a range, behind what is before it. */
static __device__ void block_row_cumsum(ptrdiff_t n, const real *x, real *out, int backward)
{
    __shared__ real held[THREADS];
    const ptrdiff_t length = (n + THREADS - 1) / THREADS, first = threadIdx.x * length;
    const ptrdiff_t last = first + length < n ? first + length : n;
    real sum = 0;
    for (ptrdiff_t i = first; i < last; i++)
        sum += x[backward ? n - 1 - i : i];
    __syncthreads();
    held[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned apart = 1; apart < THREADS; apart *= 2) {
        const real before = threadIdx.x >= apart ? held[threadIdx.x - apart] : 0;
        __syncthreads();
        held[threadIdx.x] += before;
        __syncthreads();
    }
    sum = threadIdx.x > 0 ? held[threadIdx.x - 1] : 0;
    for (ptrdiff_t i = first; i < last; i++) {
        const ptrdiff_t at = backward ? n - 1 - i : i;
        out[at] = sum += x[at];
    }
    __syncthreads();
}

/* 2 sum(log(diag(l))) */
static __device__ void block_logdet_of_factor(ptrdiff_t n, const real *l, real *found)
{
    real mine = 0;
    THREAD_STRIDE(i, n)
        mine += 2 * log(l[i * (n + 1)]);
    const real sum = block_sum(mine);
    if (threadIdx.x == 0)
        *found = sum;
}

/* Where entries of a segment begin among places in the order of their segments. */
FUNCTION ptrdiff_t group_start(ptrdiff_t n, const ptrdiff_t *keys, const ptrdiff_t *order,
                                    ptrdiff_t segment)
{
    ptrdiff_t low = 0, high = n;
    while (low < high) {
        const ptrdiff_t middle = low + (high - low) / 2;
        if (keys[order[middle]] < segment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
