"""Functions of numbers and of entries, many derived twice: physics, chemistry, statistics."""

from __future__ import annotations

from .row import Formula as F

ROWS = (
    F("variance twice", "s=", "1/(2*s^2)", "s s", "3/s^4"),
    F("inverse square law", "G= m= r=", "G*m/r^2", "r r", "6*G*m/r^4"),
    F(
        "normal kernel by scale",
        "q= s=",
        "exp(-q/(2*s^2))",
        "s s",
        "q*exp(-q/(2*s^2))*(q/s^2 - 3)/s^4",
    ),
    F(
        "normal density by scale",
        "q= s=",
        "exp(-q/(2*s^2))/(s*sqrt(2*pi))",
        "s s",
        "exp(-q/(2*s^2))*(q*(q/s^2 - 5)/s^2 + 2)/(sqrt(2*pi)*s^3)",
    ),
    F(
        "normal density twice",
        "x= m= s=",
        "exp(-(x - m)^2/(2*s^2))/(s*sqrt(2*pi))",
        "x x",
        "exp(-(x - m)^2/(2*s^2))*((x - m)^2/s^2 - 1)/(sqrt(2*pi)*s^3)",
    ),
    F(
        "Student's t by scale",
        "x= s= nu=",
        "(nu + 1)*log(1 + x^2/(nu*s^2))/2",
        "s",
        "-x^2*(nu + 1)/(s*(nu*s^2 + x^2))",
    ),
    F(
        "Student's t by scale twice",
        "x= s= nu=",
        "(nu + 1)*log(1 + x^2/(nu*s^2))/2",
        "s s",
        "x^2*(nu + 1)*(3*nu + x^2/s^2)/(nu*s^2 + x^2)^2",
    ),
    F(
        "Matern kernel of 3/2",
        "r= l=",
        "(1 + sqrt(3)*r/l)*exp(-sqrt(3)*r/l)",
        "l",
        "3*r^2*exp(-sqrt(3)*r/l)/l^3",
    ),
    F(
        "Matern kernel of 3/2 twice",
        "r= l=",
        "(1 + sqrt(3)*r/l)*exp(-sqrt(3)*r/l)",
        "l l",
        "r^2*exp(-sqrt(3)*r/l)*(3*sqrt(3)*r/l - 9)/l^4",
    ),
    F(
        "Arrhenius",
        "A= E= k= T=",
        "A*exp(-E/(k*T))",
        "T T",
        "A*E*exp(-E/(T*k))*(E/(T*k) - 2)/(k*T^3)",
    ),
    F("Michaelis and Menten", "v= c= k=", "v*c/(k + c)", "k k", "2*c*v/(c + k)^3"),
    F("two resistors", "x= y=", "x*y/(x + y)", "x x", "-2*y^2/(x + y)^3"),
    F("sinc", "w= t=", "sin(w*t)/t", "t t", "(sin(t*w)*(2/t^2 - w^2) - 2*w*cos(t*w)/t)/t"),
    F("Cauchy likelihood by entries", "x=n s=", "sum(log(1 + x.^2/s^2))", "x", "2*x./(s^2 + x.^2)"),
    F("pseudo-Huber", "x=n s=", "s^2*sum(sqrt(1 + (x/s).^2) - 1)", "x", "x./sqrt(x.^2/s^2 + 1)"),
    F("inverse power twice", "s=", "1/s^2", "s s", "6/s^4"),
    F("squared hinge", "x=n", "sum(maximum(0, 1 - x).^2)", "x", "-2*maximum(0, 1 - x)"),
    F("squared hinge twice", "x=n", "sum(maximum(0, 1 - x).^2)", "x x", "2*diag(x < 1)"),
    F("cubed positive part twice", "x=n", "sum(maximum(x, 0).^3)", "x x", "6*diag(maximum(x, 0))"),
    F(
        "bounded loss twice",
        "x=n",
        "sum(x.^2./(1 + x.^2))",
        "x x",
        "diag((2 - 6*x.^2)./(x.^2 + 1).^3)",
    ),
    F(
        "Cauchy likelihood by entries twice",
        "x=n s=",
        "sum(log(1 + x.^2/s^2))",
        "x x",
        "2*diag((s^2 - x.^2)./(s^2 + x.^2).^2)",
    ),
    F(
        "pseudo-Huber twice",
        "x=n s=",
        "s^2*sum(sqrt(1 + (x/s).^2) - 1)",
        "x x",
        "diag(1./(x.^2/s^2 + 1).^(3/2))",
    ),
)
