"""Regressions: least squares, generalised linear models."""

from .row import Formula as F
from .row import shown

LINEAR = "X=m,n w=n y=m"

ROWS = (
    shown("least squares", "X'*(X*w - y)"),
    F("least squares, order 2", LINEAR, "sum((X*w - y).^2)/2", "w w", "X'*X"),
    F("mean squared error", LINEAR, "mean((X*w - y).^2)", "w", "2*X'*(X*w - y)/m"),
    F("mean squared error, order 2", LINEAR, "mean((X*w - y).^2)", "w w", "2*X'*X/m"),
    F("least squares by the data", LINEAR, "sum((X*w - y).^2)/2", "X", "(X*w - y)*w'"),
    F("mixed derivative of least squares", LINEAR, "sum((X*w - y).^2)/2", "w y", "-X'"),
    F(
        "weighted least squares",
        LINEAR + " p=m",
        "sum(p .* (X*w - y).^2)/2",
        "w",
        "X'*(p .* (X*w - y))",
    ),
    F(
        "weighted least squares, order 2",
        LINEAR + " p=m",
        "sum(p .* (X*w - y).^2)/2",
        "w w",
        "X'*diag(p)*X",
    ),
    F(
        "generalised least squares",
        LINEAR + " P=m,m:positive_definite",
        "(X*w - y)'*inv(P)*(X*w - y)/2",
        "w",
        "X'*inv(P)*(X*w - y)",
    ),
    F("ridge", LINEAR + " a=", "sum((X*w - y).^2)/2 + a/2*w'*w", "w", "X'*(X*w - y) + a*w"),
    shown("ridge, order 2", "X'*X + a*eye(n)"),
    shown("lasso", "X'*(X*w - y) + a*sign(w)"),
    F(
        "ridge in closed form",
        "X=m,n y=m a=",
        "inv(X'*X + a*eye(n))*X'*y",
        "y",
        "inv(X'*X + a*eye(n))*X'",
    ),
    F(
        "ridge in closed form, by the penalty",
        "X=m,n y=m a=",
        "inv(X'*X + a*eye(n))*X'*y",
        "a",
        "-inv(X'*X + a*eye(n))^2*X'*y",
    ),
    F(
        "multivariate regression",
        "X=m,n W=n,k Y=m,k",
        "norm2(X*W - Y)^2/2",
        "W",
        "X'*(X*W - Y)",
    ),
    shown("multivariate regression, order 2", "#('ik->ijkj', X'*X, j=k)"),
    shown("logistic regression", "-X'*(y .* sigmoid(-y .* (X*w)))"),
    shown(
        "logistic regression, order 2",
        "X'*diag(y.^2 .* sigmoid(y .* (X*w)) .* sigmoid(-y .* (X*w)))*X",
    ),
    F(
        "Bernoulli log likelihood",
        LINEAR,
        "sum(y .* (X*w) - log(1 + exp(X*w)))",
        "w",
        "X'*(y - sigmoid(X*w))",
    ),
    F(
        "Bernoulli log likelihood, order 2",
        LINEAR,
        "sum(y .* (X*w) - log(1 + exp(X*w)))",
        "w w",
        "-X'*diag(sigmoid(X*w) .* sigmoid(-X*w))*X",
    ),
    F("Poisson regression", LINEAR, "sum(y .* (X*w) - exp(X*w))", "w", "X'*(y - exp(X*w))"),
    shown("Poisson regression, order 2", "-X'*diag(exp(X*w))*X"),
    F(
        "probit",
        LINEAR,
        "-sum(log_ndtr(y .* (X*w)))",
        "w",
        "-X'*(y .* exp(-(y .* (X*w)).^2/2 - log_ndtr(y .* (X*w))))/sqrt(2*pi)",
    ),
    F(
        "gamma regression",
        LINEAR,
        "-sum(X*w) - sum(y .* exp(-X*w))",
        "w",
        "X'*(y .* exp(-X*w) - 1)",
    ),
)
