static real row_max(ptrdiff_t n, const real *x)
{
    real found = x[0];
    for (ptrdiff_t i = 1; i < n; i++)
        found = x[i] > found || isnan(x[i]) ? x[i] : found;
    return found;
}

static real row_min(ptrdiff_t n, const real *x)
{
    real found = x[0];
    for (ptrdiff_t i = 1; i < n; i++)
        found = x[i] < found || isnan(x[i]) ? x[i] : found;
    return found;
}

/* 1 over how many entries are this one, and 0 for all others. */
static void row_shares(ptrdiff_t n, const real *x, real top, real *out)
{
    real count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += x[i] == top;
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (x[i] == top) / count;
}

static void row_hardmax(ptrdiff_t n, const real *x, real *out)
{
    if (n > 0)
        row_shares(n, x, row_max(n, x), out);
}

static void row_hardmin(ptrdiff_t n, const real *x, real *out)
{
    if (n > 0)
        row_shares(n, x, row_min(n, x), out);
}

static real row_prod(ptrdiff_t n, const real *x)
{
    real found = 1;
    for (ptrdiff_t i = 0; i < n; i++)
        found *= x[i];
    return found;
}

/* The Euclidean norm, over a power of two near the largest entry: squares stay in range. */
static real norm2(ptrdiff_t n, const real *x)
{
    real top = 0, sum = 0;
    int power;
    for (ptrdiff_t i = 0; i < n; i++)
        top = fabs(x[i]) > top || isnan(x[i]) ? fabs(x[i]) : top;
    if (top == 0 || !isfinite(top))
        return top;
    frexp(top, &power);
    real scale = ldexp((real)1, -power);
#pragma omp simd reduction(+: sum)
    for (ptrdiff_t i = 0; i < n; i++)
        sum += (x[i] * scale) * (x[i] * scale);
    return sqrt(sum) / scale;
}

/* Of powers of the entries over the largest one, which stay in range. */
static real norm_of_order(ptrdiff_t n, const real *x, real order)
{
    real top = 0, sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        top = fabs(x[i]) > top || isnan(x[i]) ? fabs(x[i]) : top;
    if (top == 0 || !isfinite(top))
        top = 1;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += pow(fabs(x[i]) / top, order);
    return pow(sum, 1 / order) * top;
}

static real logsumexp(ptrdiff_t n, const real *x)
{
    real top = -INFINITY, sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        top = x[i] > top || isnan(x[i]) ? x[i] : top;
    if (!isfinite(top))
        return top;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    return top + log(sum);
}

/* log(sum(b * exp(x))) */
static real weighted_logsumexp(ptrdiff_t n, const real *x, const real *b)
{
    real top = -INFINITY, sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        if (b[i] != 0)
            top = x[i] > top || isnan(x[i]) ? x[i] : top;
    if (!isfinite(top))
        top = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += b[i] == 0 ? 0 : b[i] * exp(x[i] - top);
    return top + log(sum);
}

static ptrdiff_t row_argmax(ptrdiff_t n, const real *x)
{
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 1; i < n; i++)
        if (x[i] > x[found] || (isnan(x[i]) && !isnan(x[found])))
            found = i;
    return found;
}

static ptrdiff_t row_argmin(ptrdiff_t n, const real *x)
{
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 1; i < n; i++)
        if (x[i] < x[found] || (isnan(x[i]) && !isnan(x[found])))
            found = i;
    return found;
}

/* Does entry i of x come before entry j? Those that are no numbers come last. */
static int row_before(const real *x, ptrdiff_t i, ptrdiff_t j)
{
    return isnan(x[i]) ? isnan(x[j]) && i < j : x[i] < x[j] || isnan(x[j]) || (x[i] == x[j] && i < j);
}

/* The places of entries in ascending order, equal ones as they stand (heap sort). */
static void row_order(ptrdiff_t n, const real *x, ptrdiff_t *order)
{
    for (ptrdiff_t i = 0; i < n; i++)
        order[i] = i;
    for (ptrdiff_t step = n / 2 + n - 1; n > 1 && step > 0; step--) {
        ptrdiff_t end = step < n ? step : n, at = step < n ? 0 : step - n;
        if (step < n) {
            ptrdiff_t last = order[step];
            order[step] = order[0];
            order[0] = last;
        }
        for (ptrdiff_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
            if (child + 1 < end && row_before(x, order[child], order[child + 1]))
                child++;
            if (!row_before(x, order[at], order[child]))
                break;
            ptrdiff_t moved = order[at];
            order[at] = order[child];
            order[child] = moved;
            at = child;
        }
    }
}

static void row_cumsum(ptrdiff_t n, const real *x, real *out, int backward)
{
    real sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t at = backward ? n - 1 - i : i;
        out[at] = sum += x[at];
    }
}

/* Does entry (i, j) belong to the triangle whose edge is so far above the diagonal? */
static int in_triangle(ptrdiff_t i, ptrdiff_t j, ptrdiff_t offset, int lower)
{
    return lower ? j - i <= offset : j - i >= offset;
}

static void extract_triangle(ptrdiff_t n, const real *a, real *packed, ptrdiff_t offset, int lower)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            if (in_triangle(i, j, offset, lower))
                *packed++ = a[i * n + j];
}

static void make_triangle(ptrdiff_t n, const real *packed, real *a, ptrdiff_t offset, int lower)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            a[i * n + j] = in_triangle(i, j, offset, lower) ? *packed++ : 0;
}
