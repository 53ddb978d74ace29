"""Models whose numbers are those of other forms, which overflow nowhere and read worse."""

from .row import Formula as F

REGRESSION = "X=m,n y=m b=n"
SCALED = "X=m,n y=m b=n a="
NEGATIVE_BINOMIAL = "sum(y .* log(a*exp(X*b)./(1 + a*exp(X*b))) - log(1 + a*exp(X*b))/a)"
SURVIVAL = "X=m,n t=m d=m b=n v="
FRAILTY = "sum((d + 1/v) .* log(1 + v*t .* exp(X*b)) - d .* (X*b))"
COX = "X=m,n R=m,m d=m b=n"
PARTIAL = "d'*(X*b) - d'*log(R*exp(X*b))"
CLOGLOG = "sum(d .* log(1 - exp(-exp(X*b))) - (1 - d) .* exp(X*b))"


ROWS = (
    F(
        "negative binomial regression", SCALED, NEGATIVE_BINOMIAL, "b",
        "X'*((y - exp(X*b))./(a*exp(X*b) + 1))",
    ),
    F(
        "negative binomial regression, order 2", SCALED, NEGATIVE_BINOMIAL, "b b",
        "-X'*diag((a*y + 1) .* exp(X*b)./(a*exp(X*b) + 1).^2)*X",
    ),
    F("gamma frailty", SURVIVAL, FRAILTY, "b", "X'*((t .* exp(X*b) - d)./(v*t .* exp(X*b) + 1))"),
    F(
        "gamma frailty, order 2", SURVIVAL, FRAILTY, "b b",
        "X'*diag(t .* (v*d + 1) .* exp(X*b)./(v*t .* exp(X*b) + 1).^2)*X",
    ),
    F(
        "Cox partial likelihood, order 2", COX, PARTIAL, "b b",
        "X'*(diag(exp(X*b))*R'*diag(d./(R*exp(X*b)).^2)*R - diag(R'*(d./(R*exp(X*b)))))"
        "*diag(exp(X*b))*X",
    ),
    F(
        "ratio to an exponential", REGRESSION, "sum(log(1 + y./exp(X*b)))", "b b",
        "X'*diag(y .* exp(X*b)./(y + exp(X*b)).^2)*X",
    ),
    F(
        "Student regression, order 2", "X=m,n y=m b=n v= s=",
        "(v + 1)/2*sum(log(1 + (y - X*b).^2/(v*s^2)))", "b b",
        "(v + 1)*X'*diag((v*s^2 - (y - X*b).^2)./((y - X*b).^2 + v*s^2).^2)*X",
    ),
    F(
        "exponential decay, by amplitude and rate", "y=n t=n a= k=", "sum((y - a*exp(-k*t)).^2)",
        "a k", "-2*sum(t .* (2*a*exp(-k*t) - y) .* exp(-k*t))",
    ),
    F(
        "complementary log-log regression", "X=m,n d=m b=n", CLOGLOG, "b",
        "X'*((d./(1 - exp(-exp(X*b))) - 1) .* exp(X*b))",
    ),
    F(
        "pseudo-Huber regression, order 2", "X=m,n y=m b=n c=",
        "c^2*sum(sqrt(1 + ((y - X*b)/c).^2) - 1)", "b b",
        "X'*diag(1./((y - X*b).^2/c^2 + 1).^(3/2))*X",
    ),
)  # fmt: skip
