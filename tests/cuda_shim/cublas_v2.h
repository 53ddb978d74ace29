/* cuBLAS on the host, for tests: the Fortran BLAS that SciPy brings. */
#pragma once
#include <cuda_runtime.h>

typedef struct Blas *cublasHandle_t;
typedef int cublasStatus_t;
enum { CUBLAS_STATUS_SUCCESS = 0 };
enum cublasOperation_t { CUBLAS_OP_N = 'N', CUBLAS_OP_T = 'T' };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 'L', CUBLAS_FILL_MODE_UPPER = 'U' };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 'L', CUBLAS_SIDE_RIGHT = 'R' };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 'N', CUBLAS_DIAG_UNIT = 'U' };

inline cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

#define SHIM_BLAS(T, P, p) \
    extern "C" void scipy_##p##gemm_(const char *, const char *, const int *, const int *, const int *, \
                                     const T *, const T *, const int *, const T *, const int *, \
                                     const T *, T *, const int *); \
    extern "C" void scipy_##p##trsm_(const char *, const char *, const char *, const char *, const int *, \
                                     const int *, const T *, const T *, const int *, T *, const int *); \
    inline cublasStatus_t cublas##P##gemm(cublasHandle_t, cublasOperation_t a, cublasOperation_t b, int m, \
                                          int n, int k, const T *alpha, const T *x, int ldx, const T *y, \
                                          int ldy, const T *beta, T *z, int ldz) \
    { \
        const char ta = (char)a, tb = (char)b; \
        if (ldx < (ta == 'N' ? m : k) || ldy < (tb == 'N' ? k : n) || ldz < m) \
            return 7; \
        scipy_##p##gemm_(&ta, &tb, &m, &n, &k, alpha, x, &ldx, y, &ldy, beta, z, &ldz); \
        return CUBLAS_STATUS_SUCCESS; \
    } \
    inline cublasStatus_t cublas##P##gemmStridedBatched( \
        cublasHandle_t handle, cublasOperation_t a, cublasOperation_t b, int m, int n, int k, \
        const T *alpha, const T *x, int ldx, long long xs, const T *y, int ldy, long long ys, \
        const T *beta, T *z, int ldz, long long zs, int count) \
    { \
        for (int item = 0; item < count; item++) \
            if (cublas##P##gemm(handle, a, b, m, n, k, alpha, x + item * xs, ldx, y + item * ys, ldy, \
                                beta, z + item * zs, ldz)) \
                return 7; \
        return CUBLAS_STATUS_SUCCESS; \
    } \
    inline cublasStatus_t cublas##P##trsm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t half, \
                                          cublasOperation_t turn, cublasDiagType_t unit, int m, int n, \
                                          const T *alpha, const T *a, int lda, T *b, int ldb) \
    { \
        const char s = (char)side, h = (char)half, t = (char)turn, u = (char)unit; \
        scipy_##p##trsm_(&s, &h, &t, &u, &m, &n, alpha, a, &lda, b, &ldb); \
        return CUBLAS_STATUS_SUCCESS; \
    }
SHIM_BLAS(double, D, d)
SHIM_BLAS(float, S, s)
