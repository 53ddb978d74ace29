"""Words that mean something in C, in its library, or in the files that are printed."""

from __future__ import annotations

KEYWORDS = (
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch",
    "typedef", "union", "unsigned", "void", "volatile", "while", "_Bool", "_Complex",
    "_Imaginary", "asm", "typeof", "fortran", "bool", "true", "false", "nullptr",
    "constexpr", "static_assert", "thread_local", "alignas", "alignof", "main",
)  # fmt: skip
LIBRARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign",
    "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma",
    "fmax", "fmin", "fmod", "frexp", "hypot", "ilogb", "ldexp", "lgamma", "llrint",
    "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf", "nan",
    "nearbyint", "nextafter", "nexttoward", "pow", "remainder", "remquo", "rint", "round",
    "scalbln", "scalbn", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "cabs",
    "carg", "cimag", "conj", "cproj", "creal", "csqrt", "complex", "imaginary", "I", "isnan",
    "isinf",
    "isfinite", "isnormal", "signbit", "fpclassify", "isless", "isgreater", "isunordered",
    "NAN", "INFINITY", "HUGE_VAL", "NULL", "offsetof", "size_t", "ptrdiff_t", "wchar_t",
    "float_t", "double_t", "math_errhandling",
    "abs", "labs", "malloc", "calloc",
    "realloc", "free", "exit", "abort", "memcpy", "memset", "memmove", "strlen", "printf",
    "puts", "read", "write", "open", "close", "stat", "time", "clock", "rand", "srand",
    "system", "getenv", "atexit",
)  # fmt: skip
FLOATS = tuple(
    f"{kind}_{name}"
    for kind in ("FLT", "DBL", "LDBL")
    for name in ("MAX", "MIN", "EPSILON", "DIG", "MANT_DIG", "MAX_EXP", "MIN_EXP", "TRUE_MIN")
)
OWN = (
    "real", "REAL", "work", "status", "REAL_EPSILON", "SINGLE", "CBLAS", "COMPLEX", "INLINED",
    "SELDOM",
)  # fmt: skip
