"""Expressions with the texts they are printed as, for the tests of all printers."""

from __future__ import annotations

import tcalc as tc
from tcalc.graph.nodes import Expr

X = tc.var("X", ("m", "n"))
T = tc.var("T", ("m", "n"))
U, V = tc.var("U", ("m", "k")), tc.var("V", ("n", "k"))
A, B, C = (tc.var(name, ("n", "n")) for name in "ABC")
S = tc.var("S", ("n", "n"), symmetric=True)
x, z, w = (tc.var(name, ("n",)) for name in "xzw")
y, Q = tc.var("y", ("m",)), tc.var("Q", ("m", "n", "m"))
R = tc.var("R", ("n", "n", "n"))
c, lam = tc.var("c"), tc.var("lam")
DECLARED = {v.name: v for v in (X, T, U, V, A, B, C, S, x, z, w, y, c, lam)}

#: Texts that are printed as they stand, and so parse to the expression that they were printed from.
FIXED = """
X'*diag(y.^2 .* sigmoid(y .* (X*w)) .* sigmoid(-y .* (X*w)))*X
2*(U*V' - T)*V
2*(V*U' - T')*U
x'*A*x
x'*A*z
A*B*C
A'*B'
(A*B*C)'
-inv(A)'*x*z'*inv(A)'
(A^3)'
(x'*x)*(z'*z)
A^3
A'*B^2*x
(A + A')*x
S*x
x*z'
diag(x)*A*diag(z)
tr(A)
tr(A*B)
diag(A)
diag(A*B)
(A .* B)*vector(1)
A.^2*vector(1)
A'*vector(1)
sum(A)
sum(A .* B)
sum(x.^2 .* z)
mean(x .* z)
mean((X*w - y).^2)
var(x)
sum(x)*std(x)
X'*(X*w - y)/2
X'*X + lam*eye(n)
A + 2*eye(n)
vector(c, n)
matrix(0, m, n)
x + c
1 + exp(x)
x./(z + 1)
x'*x/(x'*x + 1)
x.^3
x.^(-2)
c.^x
-x
-(x - z)
c - x
w + x - z
w + x + z
c^2*x'*z
where(x > 0, x, -x)
where(x > 0, x, -x) .* (z > 0)
(A*x > 0)
(x <= z)/2
C .* (A == B)
sum(x != z)
softmax(x)
x'*softmax(A*x - z)
exp(x - logsumexp(z))
exp(x + z - logsumexp(x))
maximum(x, 0)
norm2(x)
logdet(A)
inv(A)'*x
exp(A*B)'
(x - z).^2
1 - tanh(x).^2
x.^2./z
1./x
2./x.^2
x./(2*z)
-x./z.^2
c*x./(w .* z)
-diag(x./z.^2)
A'*(A*x - z)/norm2(A*x - z)
c*X/(2*m)
1/(2*x'*z)
X/(m^2*c)
sum(x./z)
X'*(y./(X*z))
exp(-c^2/2)*x/sqrt(2*pi)
2*pi*x
pi*A/3
x.^(1/3)
X*z + log(2*pi)*n/2
x*vector(1, m)'
x*vector(1, m)' + vector(1, n)*y'
2*x/3
2*X'*(X*w - y)/m
2*eye(n)/n - 2/n^2
0.001*x
1e-07*x
""".strip().splitlines()

#: A function, a variable, and how gradient and Hessian read.
DERIVED: list[tuple[str, str, str, str | None]] = [
    ("sum((X*w - y).^2)", "w", "2*X'*(X*w - y)", "2*X'*X"),
    ("sum((X*w - y).^2)/2 + lam/2*w'*w", "w", "X'*(X*w - y) + lam*w", "X'*X + lam*eye(n)"),
    ("sum((U*V' - T).^2)", "U", "2*(U*V' - T)*V", "2*#('jk->ijik', V'*V, i=m)"),
    ("sum((U*V' - T).^2)", "V", "2*(V*U' - T')*U", "2*#('jk->ijik', U'*U, i=n)"),
    ("x'*A*x", "x", "(A + A')*x", "A + A'"),
    ("logdet(A)", "A", "inv(A)'", "-#('jk,li->ijkl', inv(A), inv(A))"),
    ("logsumexp(x)", "x", "softmax(x)", "diag(softmax(x)) - softmax(x)*softmax(x)'"),
    (
        "logdet(S)",
        "S",
        "inv(S)",
        "-sym(#('ik,jl->ijkl', inv(S), inv(S)), 2)",
    ),
    ("x'*A*B*z", "A", "x*z'*B'", None),
]


def parsed(text: str) -> Expr:
    found: Expr = tc.parse(text, **DECLARED)
    return found


def high_order() -> list[tuple[Expr, str, str]]:
    """Expressions without a matrix form: text and einsum language."""
    return [
        (
            tc.einsum("jl->ijil", V.T @ V, sizes={"i": "m"}),
            "#('jk->ijik', V'*V, i=m)",
            "#('lj,lk->ijik', V, V, i=m)",
        ),
        (
            2 * tc.einsum("ij,jk->ijk", A, B),
            "2*#('ij,jk->ijk', A, B)",
            "2*#('ij,jk->ijk', A, B)",
        ),
        (
            tc.einsum("i,j,i->iij", x, z, tc.exp(x)),
            "#('i,j->iij', x .* exp(x), z)",
            "#('i,j,i->iij', x, z, exp(x))",
        ),
        (tc.eye("n"), "eye(n)", "#('->ii', i=n)"),
        (tc.zeros(("n", "n", 4)), "zeros(n, n, 4)", "0*#('->ijk', i=n, j=n, k=4)"),
        (2.5 * tc.ones(("n", "n", "m")), "5*ones(n, n, m)/2", "5*#('->ijk', i=n, j=n, k=m)/2"),
        (
            2 * tc.transpose(tc.transpose(R, (1, 2, 0)) + tc.exp(R), (2, 1, 0)),
            "2*(#('ikj->ijk', R) + #('kji->ijk', exp(R)))",
            "2*(#('ikj->ijk', R) + #('kji->ijk', exp(R)))",
        ),
        (
            tc.einsum("i,i->i", *[tc.einsum("iji->i", Q)] * 2),
            "#('iji->i', Q).^2",
            "#('iji->i', Q)^2",
        ),
    ]
