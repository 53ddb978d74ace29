"""The command line: derive, eval, check, build, gallery, serve, demo.

Exit status 0; 1 where a check finds a difference; 2 for bad input, with a message and no traceback;
130 where it is interrupted, 141 where nobody reads its output any more.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..accumulation.orders import MODES
from ..calculus.transforms import derivative
from ..compression.compress import compress
from ..graph import trees
from ..graph.nodes import Expr, Var
from ..graph.variables import canonical_name
from ..languages.registry import TEXT_LANGUAGES
from ..run.compile import compile
from ..support.declaring import declared_as
from ..support.errors import Error
from ..support.limits import LIMITS, for_text, limits
from ..support.misspelt import closest_name
from ..support.progress import Progress
from ..support.version import __version__
from .check import check
from .convention import CONVENTION
from .declarations import as_option, assumed, declare, unused
from .explain import explain
from .gallery import write_gallery
from .libraries import build_library
from .output import files, forms, listed, shown, write
from .texts import files_told_apart, given_text

#: Languages of input by name.
READERS = {name: language.read for name, language in TEXT_LANGUAGES.items() if language.read}
#: Arguments that are told by where they stand.
PLACES = ("expression", "folder")
BAD_INPUT = 2
#: As shells count a program that the signal of a closed pipe ends; 1 says that a check fails.
NOBODY_READS = 128 + 13


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who began the program
            setattr(sys, name, io.StringIO())
    try:
        return _status(argv)
    except BrokenPipeError:
        # Python writes what waits once more when it ends: there that may go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS


def _status(argv: Sequence[str] | None) -> int:
    """Run one command, of which everything is written when it ends, and say what went wrong."""
    try:
        words = _quoted_expressions(list(sys.argv[1:] if argv is None else argv))
        arguments, unknown = _parser().parse_known_args(words)
        if unknown:
            raise ValueError(_unknown(unknown[0].strip(), arguments))
        with limits(**dict(arguments.limit)):
            status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except SystemExit:  # of argparse, which has shown what an option asks for
        sys.stdout.flush()
        raise
    except BrokenPipeError:
        raise
    except (Error, ValueError, TypeError, OSError) as problem:
        print(f"tcalc: {_told(problem)}", file=sys.stderr)
        return BAD_INPUT
    except MemoryError:
        print("tcalc: not enough memory for arrays of these extents", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("tcalc: interrupted", file=sys.stderr)
        return 130


def _unknown(word: str, arguments: argparse.Namespace) -> str:
    """What a word is that a command does not take, and what may have been meant."""
    given = vars(arguments)
    place = next((name for name in PLACES if name in given), "")
    others = {"run", "command", place, "limit" if place != "expression" else ""}
    options = [f"--{name}" for name in given if name not in others]
    command = f"{word}: tcalc {arguments.command}"
    if not word.startswith("-"):
        declared = f"; a variable is declared by --var {word}" if "--var" in options else ""
        return f"{command} takes {f'one {place}' if place else 'options only'}{declared}"
    near = closest_name(word.partition("=")[0], options)
    others_are = f": it has {', '.join(options)}" if options else ""
    return f"{command} has no such option{f'; did you mean {near}?' if near else others_are}"


def _told(problem: Exception) -> str:
    """What a message says; of files their name first, and not the number of the error."""
    if isinstance(problem, OSError) and problem.filename and problem.strerror:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)


def _quoted_expressions(argv: list[str]) -> list[str]:
    """An expression may start with '-': a space before it keeps argparse from reading an option.

    ValueError of an option whose value is two dashes, which argparse takes away.
    """
    for word in argv:
        if re.fullmatch(r"--[a-z]+=--", word):
            raise ValueError(f"{word.removesuffix('=--')}: expected a value, not '--'")
    if "--" in argv:
        return argv
    option = re.compile(r"-h|--(no-)?[a-z]+(=.*)?", re.DOTALL)
    return [w if not w.startswith("-") or option.fullmatch(w) else f" {w}" for w in argv]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tcalc", description="Derivatives of tensor expressions.")
    parser.add_argument("--version", action="version", version=f"tcalc {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[Any], int], about: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=about, description=about)
        sub.set_defaults(run=run, limit=[])
        return sub

    derive = command("derive", _derive, "print a derivative as a formula or as code")
    _expression_options(derive)
    derive.add_argument(
        "--where", action=argparse.BooleanOptionalAction, default=True,
        help="name what is repeated in a formula, where that is shorter",
    )  # fmt: skip
    derive.epilog = f"Layout: {CONVENTION}."
    derive.add_argument(
        "--to", action="append", choices=forms(), help="form of the output; may stand again",
    )  # fmt: skip
    derive.add_argument(
        "--out", type=str.strip,
        help="file to write; of several forms a name without ending, or a folder",
    )  # fmt: skip
    derive.add_argument("--compress", action="store_true", help="print cores and unit tensors")
    derive.add_argument("--explain", action="store_true", help="print what each mode costs")

    evaluate = command("eval", _eval, "evaluate an expression or its derivative on data")
    _expression_options(evaluate)
    evaluate.add_argument(
        "--data", required=True, type=str.strip, help=".npz file with an array per variable"
    )
    evaluate.add_argument(
        "--out", type=str.strip, help=".npz file for the result, under the name 'result'"
    )

    build = command("build", _build, "compile an expression or its derivative to a library")
    _expression_options(build)
    build.add_argument("--to", default="shared-library", choices=("shared-library",))
    build.add_argument(
        "--out", required=True, type=str.strip,
        help="the library, such as libf.so, with libf.c and libf.h beside it; or a folder",
    )  # fmt: skip
    build.add_argument("--name", default="f", help="name of the function")
    build.add_argument(
        "--blas", default="auto", metavar="auto|none|FLAGS",
        help="matrix products: a CBLAS where one is found, plain loops, or the flags for one",
    )  # fmt: skip
    build.add_argument("--single", action="store_true", help="numbers of float32")

    test = command("check", _check, "compare a derivative with numerical differentiation")
    _expression_options(test)
    test.add_argument("--seed", type=_seed, default=0)
    test.add_argument(
        "--data", type=str.strip, help=".npz file with arrays of some variables; others are random"
    )

    for numeric in (evaluate, test):
        numeric.set_defaults(limit=[("seconds", math.inf)])  # numbers take what they take

    gallery = command("gallery", _gallery, "write a page of formulas, each in every language")
    gallery.add_argument("folder", type=Path, help="where index.html goes")

    serve = command("serve", _serve, "serve the web form")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on")
    serve.add_argument(
        "--port", type=_port, default=8000, help="port to listen on, 8000 unless stated"
    )
    serve.add_argument(
        "--proxies",
        default="",
        help="addresses, as a,b, of proxies whose word for who asks is taken",
    )

    command("demo", _demo, "the main job on real data: logistic regression, matrix factorisation")
    return parser


def _expression_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "expression", help='text such as "sum((X*w - y).^2)", @FILE, or - for standard input'
    )
    parser.add_argument(
        "--wrt", action="append", type=_names, help="variable, or several as a,b; may stand again"
    )
    parser.add_argument(
        "--order", type=int, default=1, help="order of the derivative, 1 unless stated"
    )
    parser.add_argument("--mode", default="auto", choices=("auto", *MODES))
    parser.add_argument("--language", default="matrix", choices=sorted(READERS))
    parser.add_argument(
        "--var", action="append", default=[], metavar="NAME=m,n[:property]",
        help="declare a variable: extents or dimension names, empty for a scalar",
    )  # fmt: skip
    parser.add_argument(
        "--limit", action="append", default=[], type=_limit, metavar="NAME=NUMBER",
        help=f"how far symbolic work may grow: {', '.join(LIMITS)}",
    )  # fmt: skip


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in LIMITS:
        raise argparse.ArgumentTypeError(f"limits are {', '.join(LIMITS)}, such as nodes=1e6")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{name}={value}: expected a number") from None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _wrt(arguments: Any) -> list[str]:
    """The variables to differentiate by; none where the option is not given."""
    return [name for names in arguments.wrt or () for name in names]


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0 on, not {text}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**16:
        raise argparse.ArgumentTypeError(f"a port is a whole number from 0 to 65535, not {text}")
    return int(text)


def _read(
    arguments: Any, declared: Mapping[str, Var], data: Mapping[str, Any] | None = None
) -> Expr:
    """The expression, of variables that are declared or have the shapes of data."""
    word = arguments.expression.strip()
    text = given_text(word)
    with declared_as(as_option), files_told_apart(word):
        e = READERS[arguments.language](text, **{**(data or {}), **declared})
    for warning in unused(text, e, declared):
        print(f"tcalc: warning: {warning}", file=sys.stderr)
    return e


def _derived(arguments: Any, e: Expr) -> Any:
    names = _wrt(arguments)
    if not names:
        return e
    with Progress("deriving"):
        return derivative(
            e, names[0] if len(names) == 1 else tuple(names), arguments.order, arguments.mode
        )


@for_text
def _derive(arguments: Any) -> int:
    declared = declare(arguments.var)
    e = _read(arguments, declared)
    result = _derived(arguments, e)
    chosen = list(dict.fromkeys(arguments.to or ["text"]))
    if arguments.compress:
        if arguments.to or arguments.out:
            raise ValueError("--compress prints structures: it goes without --to and --out")
        print(listed(result, [str(compress(block)) for block in trees.leaves(result)]))
    elif arguments.out:
        write(files(result, chosen, arguments.out, arguments.where), arguments.out)
    else:
        print("\n\n".join([shown(result, form, where=arguments.where) for form in chosen]))
    if sys.stderr.isatty() and _wrt(arguments):
        if shapes := assumed(e, declared):
            print(f"Not declared: {shapes}; --var declares others.", file=sys.stderr)
        print(f"Layout: {CONVENTION}.", file=sys.stderr)
    if arguments.explain:
        print(explain(result), file=sys.stderr)
    return 0


@for_text
def _build(arguments: Any) -> int:
    result = _derived(arguments, _read(arguments, declare(arguments.var)))
    with Progress("compiling"):
        built = build_library(
            result, arguments.out, arguments.name, arguments.blas.strip(), arguments.single
        )
    print(*built[:3], sep="\n")
    if built.multiplies:
        print(f"matrix products: {' '.join(built.blas) or 'plain loops, no CBLAS'}")
    return 0


def _arrays(path: str) -> dict[str, Any]:
    """The arrays of an .npz file whose names an expression can have."""
    try:
        with open(path, "rb") as source:
            file = np.load(source, allow_pickle=False)
            found = {canonical_name(n): file[n] for n in file.files if n.isidentifier()}
            if any(isinstance(value, bytes) for value in found.values()):
                raise ValueError  # NumPy gives the bytes of what is in the archive and no array
            return found
    except OSError:
        raise
    except Exception:  # zipfile, NumPy's formats and decoders have an error type each
        raise ValueError(f"{path} is not an .npz file with arrays of numbers") from None


def _check_out(out: str, data: str) -> None:
    """Refuse a file for results that would have another name, or is that of the data."""
    path = Path(out if out.endswith(".npz") else f"{out}.npz")
    if Path(out).suffix not in ("", ".npz"):
        raise ValueError(f"--out {out}: results are written as an .npz file")
    if path.exists() and path.samefile(data):
        raise ValueError(f"--out {out} would overwrite the data; choose another name")


@for_text
def _eval(arguments: Any) -> int:
    data = _arrays(arguments.data)
    shapes = {name: value.shape for name, value in data.items()}
    if arguments.out:
        _check_out(arguments.out, arguments.data)
    result = _derived(arguments, _read(arguments, declare(arguments.var), shapes))
    step = compile(result, backend="numpy")
    with Progress("evaluating"):
        value = step(data)
    if arguments.out:
        values = trees.leaves(value)
        names = ["result"] if len(values) == 1 else [f"result{k}" for k in range(len(values))]
        np.savez(arguments.out, **dict(zip(names, values, strict=True)))
    else:
        print(listed(result, [str(part) for part in trees.leaves(value)]))
    return 0


@for_text
def _check(arguments: Any) -> int:
    data = _arrays(arguments.data) if arguments.data else {}
    shapes = {name: value.shape for name, value in data.items()}
    e = _read(arguments, declare(arguments.var), shapes)
    names = _wrt(arguments) or list(e.variables)
    given = {name: value for name, value in data.items() if name in e.variables}
    if not names:
        raise ValueError("the expression has no variable to differentiate by")
    worst = 0
    for name in names:
        with Progress(f"checking {name}"):
            report = check(e, name, arguments.order, arguments.mode, arguments.seed, given)
        print(f"{name}, order {arguments.order}: {report}")
        worst = max(worst, 0 if report.passed else 1)
    return worst


def _gallery(arguments: Any) -> int:
    with Progress("writing formulas"):
        page = write_gallery(arguments.folder)
    print(page)
    return 0


def _serve(arguments: Any) -> int:
    try:
        from tcalc_web.__main__ import serve
    except ImportError as missing:
        raise ValueError(f"the web form needs {missing.name}: install tcalc[web]") from None
    status: int = serve(arguments.host, arguments.port, arguments.proxies)
    return status


def _demo(arguments: Any) -> int:
    from .demo import demo

    return demo()
