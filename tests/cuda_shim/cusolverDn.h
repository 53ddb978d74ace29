/* cuSOLVER on the host, for tests: the LAPACK that SciPy brings, in the memory that cuSOLVER is given,
   where it has its own rules: which matrices are taken, what a caller must bring. */
#pragma once
#include <cublas_v2.h>

typedef struct Solver *cusolverDnHandle_t;
typedef int cusolverStatus_t;
enum { CUSOLVER_STATUS_SUCCESS = 0, SHIM_REFUSED = 3 };
enum cusolverEigMode_t { CUSOLVER_EIG_MODE_VECTOR = 'V' };
enum { SHIM_SPACE = 5 };

inline cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
    *handle = nullptr;
    return CUSOLVER_STATUS_SUCCESS;
}

inline cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t, cudaStream_t)
{
    return CUSOLVER_STATUS_SUCCESS;
}

namespace shim {
/* Is there as much memory as was asked for? All of it is written. */
template <typename T> bool given_space(T *space, int size, int asked)
{
    for (int i = 0; i < size; i++)
        space[i] = (T)NAN;
    return size >= asked;
}
} // namespace shim

#define SHIM_SIZE int *size) { *size = SHIM_SPACE; return CUSOLVER_STATUS_SUCCESS; }
#define SHIM_SOLVER(T, P, p) \
    extern "C" void scipy_##p##potrf_(const char *, const int *, T *, const int *, int *); \
    extern "C" void scipy_##p##getrf_(const int *, const int *, T *, const int *, int *, int *); \
    extern "C" void scipy_##p##getrs_(const char *, const int *, const int *, const T *, const int *, \
                                      const int *, T *, const int *, int *); \
    extern "C" void scipy_##p##syevd_(const char *, const char *, const int *, T *, const int *, T *, T *, \
                                      const int *, int *, const int *, int *); \
    extern "C" void scipy_##p##gesvd_(const char *, const char *, const int *, const int *, T *, \
                                      const int *, T *, T *, const int *, T *, const int *, T *, \
                                      const int *, int *); \
    extern "C" void scipy_##p##geqrf_(const int *, const int *, T *, const int *, T *, T *, const int *, \
                                      int *); \
    extern "C" void scipy_##p##orgqr_(const int *, const int *, const int *, T *, const int *, const T *, \
                                      T *, const int *, int *); \
    inline cusolverStatus_t cusolverDn##P##potrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int, T *, \
                                                            int, SHIM_SIZE \
    inline cusolverStatus_t cusolverDn##P##potrf(cusolverDnHandle_t, cublasFillMode_t half, int n, T *a, \
                                                 int lda, T *space, int size, int *info) \
    { \
        const char h = (char)half; \
        scipy_##p##potrf_(&h, &n, a, &lda, info); \
        return shim::given_space(space, size, SHIM_SPACE) ? CUSOLVER_STATUS_SUCCESS : SHIM_REFUSED; \
    } \
    inline cusolverStatus_t cusolverDn##P##getrf_bufferSize(cusolverDnHandle_t, int, int, T *, int, \
                                                            SHIM_SIZE \
    inline cusolverStatus_t cusolverDn##P##getrf(cusolverDnHandle_t, int m, int n, T *a, int lda, T *space, \
                                                 int *pivots, int *info) \
    { \
        scipy_##p##getrf_(&m, &n, a, &lda, pivots, info); \
        shim::given_space(space, SHIM_SPACE, SHIM_SPACE); \
        return CUSOLVER_STATUS_SUCCESS; \
    } \
    inline cusolverStatus_t cusolverDn##P##getrs(cusolverDnHandle_t, cublasOperation_t turn, int n, int r, \
                                                 const T *a, int lda, const int *pivots, T *b, int ldb, \
                                                 int *info) \
    { \
        const char t = (char)turn; \
        scipy_##p##getrs_(&t, &n, &r, a, &lda, pivots, b, &ldb, info); \
        return CUSOLVER_STATUS_SUCCESS; \
    } \
    inline cusolverStatus_t cusolverDn##P##syevd_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, \
                                                            cublasFillMode_t, int, const T *, int, \
                                                            const T *, SHIM_SIZE \
    inline cusolverStatus_t cusolverDn##P##syevd(cusolverDnHandle_t, cusolverEigMode_t, \
                                                 cublasFillMode_t half, int n, T *a, int lda, T *w, \
                                                 T *space, int size, int *info) \
    { \
        const char v = 'V', h = (char)half; \
        const int work = 1 + 6 * n + 2 * n * n, integers = 3 + 5 * n; \
        std::vector<T> mine(work); \
        std::vector<int> other(integers); \
        scipy_##p##syevd_(&v, &h, &n, a, &lda, w, mine.data(), &work, other.data(), &integers, info); \
        return shim::given_space(space, size, SHIM_SPACE) ? CUSOLVER_STATUS_SUCCESS : SHIM_REFUSED; \
    } \
    inline cusolverStatus_t cusolverDn##P##gesvd_bufferSize(cusolverDnHandle_t, int, int, SHIM_SIZE \
    inline cusolverStatus_t cusolverDn##P##gesvd(cusolverDnHandle_t, signed char u, signed char v, int m, \
                                                 int n, T *a, int lda, T *s, T *left, int ldu, T *right, \
                                                 int ldv, T *space, int size, T *, int *info) \
    { \
        const char cu = u, cv = v; \
        const int work = 8 * (m + n); \
        std::vector<T> mine(work); \
        if (m < n) \
            return SHIM_REFUSED; \
        scipy_##p##gesvd_(&cu, &cv, &m, &n, a, &lda, s, left, &ldu, right, &ldv, mine.data(), &work, info); \
        return shim::given_space(space, size, SHIM_SPACE) ? CUSOLVER_STATUS_SUCCESS : SHIM_REFUSED; \
    } \
    inline cusolverStatus_t cusolverDn##P##geqrf_bufferSize(cusolverDnHandle_t, int, int, T *, int, \
                                                            SHIM_SIZE \
    inline cusolverStatus_t cusolverDn##P##geqrf(cusolverDnHandle_t, int m, int n, T *a, int lda, T *tau, \
                                                 T *space, int size, int *info) \
    { \
        const int work = 64 * (n + 1); \
        std::vector<T> mine(work); \
        scipy_##p##geqrf_(&m, &n, a, &lda, tau, mine.data(), &work, info); \
        return shim::given_space(space, size, SHIM_SPACE) ? CUSOLVER_STATUS_SUCCESS : SHIM_REFUSED; \
    } \
    inline cusolverStatus_t cusolverDn##P##orgqr_bufferSize(cusolverDnHandle_t, int, int, int, const T *, \
                                                            int, const T *, SHIM_SIZE \
    inline cusolverStatus_t cusolverDn##P##orgqr(cusolverDnHandle_t, int m, int n, int k, T *a, int lda, \
                                                 const T *tau, T *space, int size, int *info) \
    { \
        const int work = 64 * (n + 1); \
        std::vector<T> mine(work); \
        scipy_##p##orgqr_(&m, &n, &k, a, &lda, tau, mine.data(), &work, info); \
        return shim::given_space(space, size, SHIM_SPACE) ? CUSOLVER_STATUS_SUCCESS : SHIM_REFUSED; \
    }
SHIM_SOLVER(double, D, d)
SHIM_SOLVER(float, S, s)
