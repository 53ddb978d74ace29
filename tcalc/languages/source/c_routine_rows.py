"""Which functions of `routines/` compute operators, and how these are called."""

from __future__ import annotations

from collections.abc import Callable

from ...support.records import NamedTuple


class Routine(NamedTuple):
    """A function of `routines/`.

    Attributes
    ----------
    call : str
        Its call: operands are ``{0}``, ``{1}``, results ``{out}`` and ``{out1}`` …, ``{m}`` and
        ``{n}`` the extents of the first operand's core, ``{size}`` their product, ``{space}`` its
        scratch memory, ``{p[0]}`` a parameter; further operands, as many as ``{q}``, are
        ``{directions}``.
    core : tuple of int
        Of each operand.
    space : str or callable
        How many numbers of scratch memory it takes, in ``{m}`` and ``{n}``; a function of q.
    fails : bool
        Does it return a status?
    returns : str
        The type of what it returns, where that is the result.
    scratch : str
        The type of numbers in scratch memory.
    over : int, optional
        The operand that it works on in place: the first result is a copy of it, of which ``{r}``
        are the columns. Of such operands there may be stacks, and none of the others.
    """

    call: str
    core: tuple[int, ...] = (2,)
    space: str | Callable[[int], str] = ""
    fails: bool = False
    returns: str = ""
    scratch: str = "real"
    over: int | None = None


_MATRIX, _SQUARE, _PIVOTED = "{n}, {0}, {out}", "{n} * {n}", "{n} * ({n} + 1)"
ROUTINES: dict[str, Routine] = {
    # rows
    **{
        name: Routine(f"{own}({{size}}, {{0}})", (-1,), returns="real")
        for name, own in (
            ("max", "row_max"), ("min", "row_min"), ("prod", "row_prod"), ("norm2", "norm2"),
            ("logsumexp", "logsumexp"),
        )
    },
    "norm": Routine("norm_of_order({size}, {0}, {p[1]})", (-1,), returns="real"),
    "weighted_logsumexp": Routine(
        "weighted_logsumexp({size}, {0}, {1})", (-1, -1), returns="real"
    ),
    **{
        name: Routine(f"row_{name}({{n}}, {{0}})", (1,), returns="ptrdiff_t")
        for name in ("argmax", "argmin")
    },
    "argsort": Routine("row_order({n}, {0}, {out})", (1,)),
    **{
        name: Routine(f"row_{name}({{size}}, {{0}}, {{out}})", (-1,))
        for name in ("hardmax", "hardmin")
    },
    "cumsum": Routine("row_cumsum({n}, {0}, {out}, 0)", (1,)),
    "revcumsum": Routine("row_cumsum({n}, {0}, {out}, 1)", (1,)),
    "gaps": Routine("gaps({n}, {0}, {out}, {p[0]})", (1,), fails=True),
    "svd_gaps": Routine("svd_gaps({n}, {0}, {out}, {p[0]})", (1,), fails=True),
    "svd_reciprocal": Routine("svd_reciprocal({n}, {0}, {out}, {p[0]})", (1,), fails=True),
    "maketrian": Routine("make_triangle({rows}, {0}, {out}, {p[0]}, {p[1]})", (1,)),
    # matrices
    "extracttrian": Routine("extract_triangle({n}, {0}, {out}, {p[0]}, {p[1]})"),
    "column_signs": Routine("column_signs({m}, {n}, {0}, {out})"),
    "cholesky": Routine("cholesky({out}, {n})", fails=True, over=0),
    "cholesky_pullback": Routine(
        "cholesky_pullback({0}, {n}, 1, {1}, {n}, 1, {out}, {n}, {n})", (2, 2), fails=True
    ),
    "tri_inverse": Routine("tri_inverse({out}, {n})", fails=True, over=0),
    "inverse_definite_of_factor": Routine("inverse_definite({out}, {n})", over=0),
    "logdet_definite_of_factor": Routine(f"logdet_of_factor({_MATRIX})"),
    "solve_definite": Routine(
        "solve_definite({0}, {out}, {n}, {r})", (2, -1), fails=True, over=1
    ),
    "solve_lower": Routine(
        "solve_lower({0}, {n}, 1, {p[0]}, {out}, {r}, {n}, {r})", (2, -1), fails=True, over=1
    ),
    "congruence": Routine(
        "congruence({0}, {n}, 1, {out}, {n}, {n})", (2, 2), fails=True, over=1
    ),
    "lu": Routine("lu({out}, {n}, {out1})", fails=True, over=0),
    "solve_lu": Routine(
        "eliminated({n}, {r}, {0}, {1}, {p[0]}, {out})", (2, 1, -1), over=2
    ),
    "inv": Routine(f"inv({_MATRIX}, {{space}})", space=_PIVOTED, fails=True),
    **{
        name: Routine(f"{name}({_MATRIX}, {{space}})", space=_PIVOTED)
        for name in ("det", "det_sign", "logdet")
    },
    **dict.fromkeys(
        ("eigh", "eigh_nan", "eigh_epsilon"),
        Routine("eigh({n}, {0}, {out}, {out1}, {space})", space=_SQUARE, fails=True),
    ),
    "svd": Routine(
        "svd({m}, {n}, {0}, {out}, {out1}, {out2}, {space})",
        space="({m} + {n}) * ({m} + {n})", fails=True,
    ),
    **dict.fromkeys(
        ("pinv", "least_squares_inverse"),
        Routine(
            "pinv({m}, {n}, {0}, {out}, {space})", space="2 * ({m} + {n} + 1) * ({m} + {n})",
            fails=True,
        ),
    ),
    "lq": Routine("lq({m}, {n}, {0}, {out}, {out1})"),
    # functions of matrices, and their derivatives along directions
    **{
        f"{name}_frechet": Routine(
            f"{name}_frechet({{n}}, {{q}}, {{0}}, {{directions}}, {{out}}, {{space}})", space=space,
            fails=True,
        )
        for name, space in (
            ("adj", lambda q: f"{q + 5} * {_SQUARE} + {{n}}"),
            ("expm", lambda q: f"{7 * 2**q} * {_SQUARE} + {{n}}"),
            ("sqrtm", lambda q: f"{2**q + 8} * {_SQUARE}"),
            ("logm", lambda q: f"{3 * 2**q + 8} * {_SQUARE}"),
        )
    },
    "matrix_function": Routine(
        "spectral({n}, {q}, {p[0]}, {1}, {2}, {directions}, {out}, {space})", (2, 1, 2),
        lambda q: f"{q + 2} * {_SQUARE} + {' * '.join(['{n}'] * (q + 1))}", True,
    ),
    "matrix_function_trace": Routine(
        "spectral_trace({n}, {p[0]}, {1})", (2, 1, 2), returns="real"
    ),
}  # fmt: skip
