"""Queries of general interest: what the gallery shows."""

from __future__ import annotations

from ..support.records import NamedTuple


class Query(NamedTuple):
    """A function and what to derive it by.

    Attributes
    ----------
    name : str
        What it is called.
    declared : str
        Its variables as on the command line, `"X=m,n S=n,n:symmetric c="`.
    text : str
        The function, in the matrix language.
    by : str
        Names of the variables to derive by, one after the other.
    """

    name: str
    declared: str
    text: str
    by: str


#: By subject.
GALLERY: dict[str, tuple[Query, ...]] = {
    "Linear and quadratic forms": (
        Query("bilinear form", "a=m b=n X=m,n", "a'*X*b", "X"),
        Query("quadratic form", "A=n,n x=n", "x'*A*x", "x"),
        Query("quadratic form, order 2", "A=n,n x=n", "x'*A*x", "x x"),
        Query("symmetric quadratic form", "S=n,n:symmetric x=n", "x'*S*x", "x"),
        Query("square of a quadratic form, order 2", "A=n,n x=n", "(x'*A*x)^2", "x x"),
        Query(
            "Rayleigh quotient of a symmetric matrix", "S=n,n:symmetric x=n", "x'*S*x/(x'*x)", "x"
        ),
        Query(
            "product of affine maps", "B=m,n C=m,m D=m,n b=m d=m x=n", "(B*x + b)'*C*(D*x + d)", "x"
        ),
        Query("trace of a product of three", "A=k,m X=m,n B=n,k", "tr(A*X*B)", "X"),
        Query("trace of a fourth power", "X=n,n", "tr(X^4)", "X"),
        Query(
            "trace of a squared affine map",
            "A=k,m X=m,n B=n,k C=k,k",
            "tr((A*X*B + C)*(A*X*B + C)')",
            "X",
        ),
        Query("trace of a Kronecker product", "A=m,m X=n,n", "tr(kron(A, X))", "X"),
        Query("matrix times vector, by the matrix", "A=m,n x=n", "A*x", "A"),
    ),
    "Determinants and inverses": (
        Query("log-determinant", "X=n,n", "logdet(X)", "X"),
        Query("determinant of a cube", "X=n,n", "det(X^3)", "X"),
        Query("log-determinant of a symmetric matrix", "S=n,n:symmetric", "logdet(S)", "S"),
        Query("log-determinant, order 2", "X=n,n", "logdet(X)", "X X"),
        Query("inverse in a bilinear form", "a=n X=n,n b=n", "a'*inv(X)*b", "X"),
        Query("discriminant analysis", "W=m,n S=m,m:symmetric", "tr(W'*S*W*inv(W'*W))", "W"),
        Query("sum of exponentials of eigenvalues", "S=n,n:symmetric", "sum(exp(eigvals(S)))", "S"),
        Query(
            "Cholesky log-determinant", "P=n,n:positive_definite", "2*sum(log(diag(chol(P))))", "P"
        ),
        Query("D-optimal design", "X=m,n p=m", "logdet(X'*diag(p)*X)", "p"),
    ),
    "Norms and entrywise functions": (
        Query("residual norm", "A=m,n x=n y=m", "norm2(A*x - y)", "x"),
        Query("distance, order 2", "x=n a=n", "norm2(x - a)", "x x"),
        Query("cosine similarity", "x=n y=n", "x'*y/(norm2(x)*norm2(y))", "x"),
        Query("log barrier, order 2", "A=m,n x=n b=m", "-sum(log(b - A*x))", "x x"),
        Query("relative entropy", "x=n y=n", "sum(x .* log(x./y))", "x"),
        Query("sum of powers", "x=n a=", "sum(x.^a)", "x"),
        Query("sum of cubes, order 3", "x=n", "sum(x.^3)", "x x x"),
        Query(
            "exponential of a quadratic form, order 2",
            "S=n,n:symmetric x=n",
            "exp(-x'*S*x/2)",
            "x x",
        ),
    ),
    "Regression": (
        Query("least squares", "X=m,n w=n y=m", "sum((X*w - y).^2)/2", "w"),
        Query("ridge, order 2", "X=m,n w=n y=m a=", "sum((X*w - y).^2)/2 + a/2*w'*w", "w w"),
        Query("lasso", "X=m,n w=n y=m a=", "sum((X*w - y).^2)/2 + a*norm1(w)", "w"),
        Query("logistic regression", "X=m,n w=n y=m", "sum(log(1 + exp(-y .* (X*w))))", "w"),
        Query(
            "logistic regression, order 2", "X=m,n w=n y=m", "sum(log(1 + exp(-y .* (X*w))))", "w w"
        ),
        Query("Poisson regression, order 2", "X=m,n w=n y=m", "sum(y .* (X*w) - exp(X*w))", "w w"),
        Query("multivariate regression, order 2", "X=m,n W=n,k Y=m,k", "norm2(X*W - Y)^2/2", "W W"),
    ),
    "Statistics": (
        Query("Gaussian by the deviation", "x= u= s=", "log(s) + (x - u)^2/(2*s^2)", "s"),
        Query(
            "multivariate Gaussian by the covariance",
            "x=n u=n P=n,n:positive_definite",
            "(x - u)'*inv(P)*(x - u)/2 + logdet(P)/2",
            "P",
        ),
        Query(
            "covariance selection, order 2",
            "T=n,n:symmetric P=n,n:positive_definite",
            "-logdet(P) + tr(T*P)",
            "P P",
        ),
        Query(
            "Wishart log density",
            "P=n,n:positive_definite V=n,n:positive_definite a=",
            "(a - n - 1)/2*logdet(P) - tr(inv(V)*P)/2",
            "P",
        ),
        Query("variance", "x=n", "mean((x - mean(x)).^2)", "x"),
        Query("standard deviation", "x=n", "sqrt(mean((x - mean(x)).^2))", "x"),
        Query("log-sum-exp, order 2", "x=n", "log(sum(exp(x)))", "x x"),
        Query("mixture by a weight", "a= p= q=", "log(a*p + (1 - a)*q)", "a"),
        Query(
            "Gaussian process marginal, by the noise",
            "K=n,n:positive_definite y=n a=",
            "y'*inv(K + a*eye(n))*y/2 + logdet(K + a*eye(n))/2",
            "a",
        ),
    ),
    "Learning": (
        Query("softmax", "x=n", "softmax(x)", "x"),
        Query("cross entropy of logits", "x=n p=n", "logsumexp(x) - p'*x", "x"),
        Query("softmax regression, order 2", "W=m,n x=n p=m", "logsumexp(W*x) - p'*W*x", "W W"),
        Query("attention score", "q=n K=m,n v=m", "v'*softmax(K*q)", "q"),
        Query(
            "two layers, by the inner weights",
            "V=k,m W=m,n x=n y=k",
            "norm2(V*tanh(W*x) - y)^2/2",
            "W",
        ),
        Query("hinge loss", "X=m,n w=n y=m", "sum(relu(1 - y .* (X*w)))", "w"),
        Query("Gaussian kernel", "x=n y=n c=", "exp(-(x - y)'*(x - y)/(2*c^2))", "x"),
        Query("matrix factorisation, order 2", "T=m,n U=m,k V=n,k", "norm2(T - U*V')^2", "U U"),
        Query("layer normalisation", "x=n a=n", "a'*(x - mean(x))/std(x)", "x"),
        Query("contrastive loss", "q=n K=m,n p=m t=", "logsumexp(K*q/t) - p'*K*q/t", "q"),
    ),
    "Control and mechanics": (
        Query(
            "quadratic cost of a step",
            "A=n,n B=n,k P=n,n:positive_definite R=k,k:symmetric x=n u=k",
            "(A*x + B*u)'*P*(A*x + B*u)/2 + u'*R*u/2",
            "u",
        ),
        Query(
            "Kalman gain, trace of the covariance",
            "P=n,n:symmetric H=m,n R=m,m:symmetric K=n,m",
            "tr((eye(n) - K*H)*P*(eye(n) - K*H)' + K*R*K')",
            "K",
        ),
        Query(
            "innovation covariance, by the noise",
            "H=m,n P=n,n:positive_definite R=m,m:positive_definite",
            "logdet(H*P*H' + R)",
            "R",
        ),
        Query("Lyapunov residual", "A=n,n P=n,n Q=n,n", "norm2(A*P + P*A' + Q)^2/2", "P"),
        Query(
            "hyperelastic energy",
            "F=n,n a= b=",
            "a/2*tr(F'*F) - a*logdet(F) + b/2*logdet(F)^2",
            "F",
        ),
    ),
}
