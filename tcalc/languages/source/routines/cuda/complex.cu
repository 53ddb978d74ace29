/* Complex numbers of the device. */
template <typename T> struct Complex {
    T re, im;
    __host__ __device__ Complex(T re = 0, T im = 0) : re(re), im(im) {}
    __host__ __device__ Complex operator-() const { return Complex(-re, -im); }
    __host__ __device__ Complex &operator+=(Complex b) { return *this = *this + b; }
    __host__ __device__ Complex &operator-=(Complex b) { return *this = *this - b; }
    __host__ __device__ Complex &operator*=(Complex b) { return *this = *this * b; }
    __host__ __device__ Complex &operator/=(Complex b) { return *this = *this / b; }
    friend __host__ __device__ Complex operator+(Complex a, Complex b)
    {
        return Complex(a.re + b.re, a.im + b.im);
    }
    friend __host__ __device__ Complex operator-(Complex a, Complex b)
    {
        return Complex(a.re - b.re, a.im - b.im);
    }
    friend __host__ __device__ Complex operator*(Complex a, Complex b)
    {
        return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    }
    /* Smith's quotient: nothing is squared. */
    friend __host__ __device__ Complex operator/(Complex a, Complex b)
    {
        if (fabs(b.re) >= fabs(b.im)) {
            const T share = b.im / b.re, whole = b.re + b.im * share;
            return Complex((a.re + a.im * share) / whole, (a.im - a.re * share) / whole);
        }
        const T share = b.re / b.im, whole = b.re * share + b.im;
        return Complex((a.re * share + a.im) / whole, (a.im * share - a.re) / whole);
    }
    friend __host__ __device__ bool operator==(Complex a, Complex b)
    {
        return a.re == b.re && a.im == b.im;
    }
    friend __host__ __device__ bool operator!=(Complex a, Complex b) { return !(a == b); }
    friend __host__ __device__ T creal(Complex a) { return a.re; }
    friend __host__ __device__ T cimag(Complex a) { return a.im; }
    friend __host__ __device__ Complex conj(Complex a) { return Complex(a.re, -a.im); }
    friend __host__ __device__ T cabs(Complex a) { return hypot(a.re, a.im); }
    /* The root on the right, its imaginary part with the number's sign. */
    friend __host__ __device__ Complex csqrt(Complex a)
    {
        const T size = sqrt((fabs(a.re) + hypot(a.re, a.im)) / 2);
        if (size == 0)
            return Complex(0, a.im);
        if (a.re >= 0)
            return Complex(size, a.im / (2 * size));
        return Complex(fabs(a.im) / (2 * size), copysign(size, a.im));
    }
};
