"""Sensitivities of option prices, as text books on finance have them."""

from __future__ import annotations

from .row import Formula as F

VARIABLES = "s= k= r= v= t="
UP, DOWN = (f"(t*(r {sign} v^2/2) + log(s/k))" for sign in "+-")
CALL = f"s*ndtr({UP}/(v*sqrt(t))) - k*exp(-r*t)*ndtr({DOWN}/(v*sqrt(t)))"
PUT = f"k*exp(-r*t)*ndtr(-{DOWN}/(v*sqrt(t))) - s*ndtr(-{UP}/(v*sqrt(t)))"
DENSITY = f"exp(-{UP}^2/(2*t*v^2))"

ROWS = (
    F("Black and Scholes: delta", VARIABLES, CALL, "s", f"ndtr({UP}/(v*sqrt(t)))"),
    F(
        "Black and Scholes: dual delta", VARIABLES, CALL, "k",
        f"-exp(-r*t)*ndtr({DOWN}/(v*sqrt(t)))",
    ),
    F("Black and Scholes: rho", VARIABLES, CALL, "r", f"k*t*exp(-r*t)*ndtr({DOWN}/(v*sqrt(t)))"),
    F("Black and Scholes: vega", VARIABLES, CALL, "v", f"s*sqrt(t)*{DENSITY}/sqrt(2*pi)"),
    F(
        "Black and Scholes: theta", VARIABLES, CALL, "t",
        f"k*r*exp(-r*t)*ndtr({DOWN}/(v*sqrt(t))) + s*v*{DENSITY}/(2*sqrt(2*pi)*sqrt(t))",
    ),
    F("Black and Scholes: gamma", VARIABLES, CALL, "s s", f"{DENSITY}/(sqrt(2*pi)*s*v*sqrt(t))"),
    F("Black and Scholes: delta of a put", VARIABLES, PUT, "s", f"-ndtr(-{UP}/(v*sqrt(t)))"),
    F(
        "Bachelier: delta", "s= k= v=",
        "(s - k)*ndtr((s - k)/v) + v*exp(-(s - k)^2/(2*v^2))/sqrt(2*pi)", "s", "ndtr((s - k)/v)",
    ),
    F(
        "Bachelier: vega", "s= k= v=",
        "(s - k)*ndtr((s - k)/v) + v*exp(-(s - k)^2/(2*v^2))/sqrt(2*pi)", "v",
        "exp(-(s - k)^2/(2*v^2))/sqrt(2*pi)",
    ),
    F(
        "Black and Scholes: delta by strikes", "S=n K=n v=",
        "sum(S .* ndtr(log(S./K)/v + v/2) - K .* ndtr(log(S./K)/v - v/2))", "S",
        "ndtr(log(S./K)/v + v/2)",
    ),
    F("exchange of assets: delta", "s= k= v=",
      "s*ndtr(log(s/k)/v + v/2) - k*ndtr(log(s/k)/v - v/2)", "k", "-ndtr(log(s/k)/v - v/2)"),
)  # fmt: skip
