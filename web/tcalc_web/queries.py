"""The answer to one query, as JSON: what a child of the fork server computes.

Everything here uses tcalc's public names. Text is parsed, never run; arrays are made for the
numerical check only, a few entries large.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import tcalc as tc

from .confinement import unwarned
from .drawing import picture
from .guess import guessed
from .settings import Settings

READERS: dict[str, Callable[..., tc.Expr]] = {
    "matrix": tc.parse,
    "index": tc.parse_index,
    "einsum": tc.parse_einsum,
}
#: What a derivative can be written as, beside code.
FORMULAS: dict[str, Callable[..., str]] = {
    "text": tc.to_text,
    "latex": tc.to_latex,
    "mathml": tc.to_mathml,
    "einsum": tc.to_einsum,
    "index": tc.to_index,
    "dot": tc.to_dot,
}
_LANGUAGES = ("numpy", "cupy", "jax", "torch", "julia", "matlab", "c", "cuda")
#: Formulas in which repeated parts can get names.
_WHERE = ("text", "latex", "mathml")
#: A picture of the DAG, which Graphviz draws, or else `drawing`.
PICTURE = "svg"


def _writes(language: str) -> bool:
    try:
        return bool(tc.to_code(tc.var("x"), language))
    except ValueError:
        return False


CODE = tuple(name for name in _LANGUAGES if _writes(name))
OUTPUTS = (*FORMULAS, PICTURE, *CODE)
MODES = ("auto", "forward", "reverse", "cross-country")
PROPERTIES = ("symmetric", "positive_definite", "diagonal", "lower", "upper", "nonnegative")
#: Seconds that Graphviz may take.
_DRAWING = 0.5

#: Errors of what a user wrote; others are mistakes of ours.
_USERS = (tc.Error, ValueError, TypeError)
_PLACE = re.compile(r"(?:(\d+):(\d+): )?(.*)", re.DOTALL)
_EXPECTED = re.compile(r"\bexpected (.+?)(?:, found .*|;.*)?$")
#: What a message advises that only holds where tcalc is called.
_ELSEWHERE = re.compile(r",? and tc\.limits\(.*allows more$")
#: Longer messages repeat much of what was typed.
_MESSAGE = 400


def answer(query: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The reply to a query that `schema.Query` has checked.

    Returns
    -------
    dict
        With ``status``, as of HTTP, and ``body``.
    """
    try:
        try:
            with tc.limits(characters=settings.output):
                body = _derived(query, settings)
        finally:  # inside, as a warning may come until it ends
            unwarned()
        return {"status": 200, "body": body}
    except (MemoryError, RecursionError):
        return _refused(
            422,
            "LimitError",
            "this needs more memory than a query has; a lower order takes less",
        )
    except _USERS as error:
        return {"status": 422, "body": {"error": told(error)}}
    except Exception:
        return _refused(500, "Mistake", "this is a mistake of the server's, not yours")


def written(query: Mapping[str, Any], settings: Settings) -> bytes:
    """The reply to a query as JSON, or where that is too long another one that says so."""
    text = json.dumps(answer(query, settings), separators=(",", ":")).encode()
    if len(text) <= settings.reply:
        return text
    return json.dumps(
        _refused(
            422,
            "LimitError",
            "all outputs together are too long to be sent; ask for fewer, or for a lower order",
        )
    ).encode()


def _refused(status: int, kind: str, message: str) -> dict[str, Any]:
    return {"status": status, "body": {"error": {"kind": kind, "message": message}}}


def out_of_time(*_: Any) -> None:
    """What the kernel's signal becomes: a limit that is told while there is time to tell it.

    Raises
    ------
    LimitError
        Always.
    """
    raise tc.LimitError(
        "this needs more than the seconds of the processor that a query has; a lower order or a"
        " shorter expression takes less",
        "seconds",
    )


def told(error: Exception) -> dict[str, Any]:
    """An error as JSON: its kind, its message, and its place in the text where it has one."""
    head = str(error).split("\n", 1)[0]
    found = _PLACE.fullmatch(head)
    assert found is not None
    line, column, message = found.groups()
    message = _ELSEWHERE.sub("", message)
    if len(message) > _MESSAGE:
        message = f"{message[: _MESSAGE // 2]} … {message[-_MESSAGE // 2 :]}"
    expected = _EXPECTED.search(message)
    return {
        "kind": type(error).__name__,
        "message": message,
        "line": int(line) if line else None,
        "column": int(column) if column else None,
        "expected": expected.group(1) if expected else None,
    }


def _derived(query: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    given = query["variables"]
    if query["guess"]:
        given = guessed(query["expression"], query["language"], given, tc.parse) | given
    declared = {name: _declared(name, one) for name, one in given.items()}
    e = READERS[query["language"]](query["expression"], **declared)
    wrt, order, mode = query["wrt"], query["order"], query["mode"]
    if not wrt:
        order = 0
    # One variable gives one derivative; several give a nest, written as one.
    by = wrt[0] if len(wrt) == 1 else tuple(wrt)
    result = tc.derivative(e, by, order, mode) if order else e
    sizes = query["sizes"]
    explained = tc.explain(e, by if order else None, order, sizes=sizes)
    single = isinstance(result, tc.Expr)
    reply: dict[str, Any] = {
        "shape": list(result.shape) if single else None,
        "layout": explained.layout,
        "variables": {
            name: {"shape": list(v.shape), "properties": list(getattr(v, "properties", ()))}
            for name, v in e.variables.items()
        },
        "outputs": _outputs(result, query, settings),
        "modes": [
            {"mode": row.mode, "steps": row.steps, "flops": row.flops, "peak_bytes": row.peak_bytes}
            for row in explained.rows
        ],
        "sizes": explained.sizes,
        "check": _checked(e, wrt, order, mode) if query["check"] and order else None,
        "compressed": None,
    }
    if query["compress"] and single and order:
        reply["compressed"] = _bounded(str(tc.compress(result)), settings)
    return reply


def _declared(name: str, given: Mapping[str, Any]) -> tc.Expr:
    return tc.var(name, tuple(given["shape"]), **dict.fromkeys(given["properties"], True))


def _outputs(result: Any, query: Mapping[str, Any], settings: Settings) -> dict[str, str]:
    """What was asked for; an output that this result does not have says why instead."""
    found = {}
    for name in query["outputs"]:
        try:
            found[name] = _bounded(_written(result, name, query["where"]), settings)
        except tc.LimitError:
            raise
        except _USERS as reason:
            if name in FORMULAS:
                raise
            found[name] = f"{reason}"
    return found


def _written(result: Any, output: str, where: bool) -> str:
    if output == PICTURE:
        return picture(tc.to_dot(result), _DRAWING)
    if output not in FORMULAS:
        return tc.to_code(result, output)
    return FORMULAS[output](result, **({"where": True} if where and output in _WHERE else {}))


def _bounded(text: str, settings: Settings) -> str:
    if len(text) > settings.output:
        raise tc.LimitError(
            f"an output of {len(text):,} characters is too long to be sent; a lower order is"
            " shorter"
        )
    return text


def _checked(e: tc.Expr, wrt: list[str], order: int, mode: str) -> dict[str, Any]:
    """Numerical differentiation on random data; what cannot be checked says why."""
    reports = []
    for name in dict.fromkeys(wrt):
        try:
            reports.append(tc.check(e, name, order, mode))
        except (tc.Error, ValueError) as problem:
            return {"agrees": None, "error": None, "reason": str(problem).split("\n", 1)[0]}
    return {
        "agrees": all(report.passed for report in reports),
        "error": max(report.error for report in reports),
        "tolerance": reports[0].tolerance,
        "sizes": reports[0].sizes,
    }


#: What makes a fork server warm: each imports and caches what the first of its kind would.
_REHEARSAL = (
    ("matrix", "sum(log(1 + exp(-y .* (X*w))))", "w", 2),
    ("matrix", "log(det(K)) + y'*inv(K)*y", "K", 1),
    ("matrix", "norm2(A*x - y)^2 / (x'*x)", "x", 2),
    ("matrix", "tr(A*inv(X)*B) + sum(softmax(A*z))", "X", 1),
    ("matrix", "norm2(tanh(X*V)*w - y)^2", "V", 2),
    ("matrix", "tr(B*expm(b*A)) + logdet(A'*B*A) + tr(logm(A) + sqrtm(B)*chol(A*A'))", "A", 1),
    ("matrix", "tr(B*expm(b*A))", "b", 1),
    ("index", "f = sum[i,j](exp(a[i] * b[j]))", "a", 1),
    ("einsum", "#('ij,j->i', A, x)", "x", 1),
)


def warm_up(settings: Settings) -> None:
    """Answer a few queries, so that children find everything imported."""
    variables: dict[str, dict[str, Any]] = {
        "index": {"a": {"shape": ["n"], "properties": []}, "b": {"shape": ["m"], "properties": []}}
    }
    for language, expression, wrt, order in _REHEARSAL:
        query = {
            "expression": expression, "language": language,
            "variables": variables.get(language, {}), "wrt": [wrt], "order": order,
            "mode": "auto", "outputs": list(OUTPUTS), "sizes": {}, "check": True,
            "compress": True, "where": False, "guess": False,
        }  # fmt: skip
        answer(query, settings)
