"""Short texts that ask for much: families of them, each filled up to about ten kilobytes.

Run as a script it reads them all, one line of output each, in a process with little memory.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import resource
import signal
import string
from collections.abc import Callable, Iterator
from typing import Any

import tcalc as tc
from tcalc.app.cli import main

#: Characters of a text, bytes of address space, seconds for all of them.
LENGTH, MEMORY, SECONDS = 10_000, 512 * 2**20, 600

#: What each may take: less than by default, so that all of them take half a minute.
NODES, STEPS = 3_000, 150_000

#: What `parse_index` declares.
ARRAYS: dict[str, Any] = {"x": "n", "y": 8, "A": ("n", "n"), "a": (), "b": ()}
INDICES = [letter + number for number in ("", "1", "2", "3") for letter in "ijklmnpqrs"]


def filled(piece: str, between: str = "") -> str:
    count = (LENGTH - 20) // (len(piece) + len(between))
    return between.join([piece] * count)


def numbered(piece: str, between: str) -> str:
    """Pieces with a number in them, all different."""
    longest = len(piece.format(9999)) + len(between)
    return between.join([piece.format(k) for k in range((LENGTH - 20) // longest)])


def nested(opening: str, inner: str, closing: str = ")") -> str:
    count = (LENGTH - len(inner)) // (len(opening) + len(closing))
    return opening * count + inner + closing * count


def doubled(step: str, first: str, times: int) -> str:
    """Statements that each use the one before twice."""
    names = [first, *[f"q{k}" for k in range(times)]]
    rows = [f"{new}={step.format(old)}" for old, new in itertools.pairwise(names)]
    return ";".join(rows)[: LENGTH - 1].rpartition(";")[0] if times > 1 else rows[0]


def matrix_texts() -> Iterator[tuple[str, str]]:
    for name in ("exp", "norm2", "inv", "chol", "expm", "det", "diag"):
        for inner in "xA":
            yield f"{name} of {name} of {inner}", nested(f"{name}(", inner)
    for operator in ("+", "-", "*", ".*", "/", "\\", "^", "⊗"):
        for piece in ("a", "x", "A*B'"):
            yield f"{piece} {operator}", filled(piece, operator)
        for piece in ("(A{}+B)", "(x{0}+y{0})"):
            yield f"{piece} {operator}", numbered(piece, operator)
    for step in ("{0}*{0}", "sin({0})*{0}", "kron({0},{0})", "{0}+{0}'", "where({0}>1,{0}*2,-{0})",
                 "exp({0})/(1+exp({0}))", "expm({0})", "inv({0})+{0}", "{0}.^{0}"):  # fmt: skip
        for first in "xA":
            yield f"{step} of {first}", doubled(step, first, 200)
    for power in ("1000000", "-1000000", "1e300", "0.5"):
        for base in ("a", "A", "(A+B)", "(A*B)", "eye(3)"):
            yield f"{base}^{power}", f"{base}^{power}"
            yield f"({base}^{power})^{power}", f"tr((({base})^{power})^{power})"
    for step in ("({0})*({0})", "({0}).^2", "({0}+n)*({0})"):
        for first in ("n", "1/n", "tr(eye(n))*a", "x/n", "A/tr(eye(n))"):
            yield f"{step} of {first}", f"{doubled(step, first, 40)};q38*eye(n)"
    for size in ("1000000000", "9" * 30, "9" * 5_000, "n", "0", "n^1000", "(e^888)^8", "(m+n)^200"):
        for made in ("eye({0})*eye({0})", "tr(eye({}))", "kron(eye({0}),eye({0}))", "vector(a,{})"):
            yield f"{made} of {size[:9]}", made.format(size)
    for word in "()[]'+-*^.,;=<&#⊗1aA²\0\ud800":
        yield f"only {word!r}", word * LENGTH
        yield f"a and {word!r}", "a" + word * (LENGTH - 1)
    letters = string.ascii_letters
    for count in (8, 20, 50):
        pairs = ["".join(pair) for pair in itertools.combinations(letters[:count], 2)][:600]
        for what, words in (
            ("complete graph", pairs), ("star", ["a" + k for k in letters[:count]]),
            ("path", [letters[k : k + 2] for k in range(count)]), ("parallel", ["ab"] * count),
        ):  # fmt: skip
            arrays = ",".join(["A"] * len(words))
            yield f"{what} of {count}", f"#('{','.join(words)}->',{arrays})"
        vectors, axes = ",".join(["x"] * count), letters[:count]
        yield f"{count} axes", f"#('{','.join(axes)}->{axes}',{vectors})"
    yield "a log of exponentials", f"log({numbered('exp(a{})', '+')})"
    yield "the power of a sum", f"({numbered('a{}', '+')})^20"
    yield "keys in keys", filled("sum[")
    yield "brackets", "(" * 200_000 + "a" + ")" * 200_000


def index_texts() -> Iterator[tuple[str, str]]:
    for count in (3, 8, 20, 40):
        names = INDICES[:count]
        whole = ",".join([f"{i}=0..n-1" for i in names])
        few = ",".join([f"{i}=0..7" for i in names])
        pairs = list(itertools.pairwise(names))
        far = "+".join([f"{k}*{i}" for k, i in enumerate(names, 2)])
        inner = "".join([f",{j}={i}-3..{i}+3" for i, j in pairs])
        for name, body in {
            "ordered": f"sum[{whole}]([{' & '.join([f'{i}<={j}' for i, j in pairs])}])",
            "equal": f"sum[{whole}]([{' & '.join([f'{i}=={j}' for i, j in pairs])}])",
            "one of": f"sum[{whole}]([{' | '.join([f'{i}<{j}' for i, j in pairs])}])",
            "weighted": f"sum[{few}]([{far}<=99])",
            "multiples": f"sum[{few}]([{' & '.join([f'2*{i}==3*{j}' for i, j in pairs])}])",
            "bands": f"sum[i=0..n-1{inner}]([{names[-1]}==3])",
            "floors": f"sum[k=0..7](y[{'floor(' * count}k{'/2)' * count}])",
            "choices": f"sum[k=0..7]({'where(k<=3,' * count}y[k]{',a)' * count})",
            "far apart": f"sum[{few}](x[{far}])",
        }.items():
            yield f"{name} {count}", f"f = {body}"
    yield (
        "earlier arrays",
        "f0[i=0..n-1]=x[i];"
        + ";".join([f"f{k}[i=0..n-1]=sum[j=0..i](f{k - 1}[j])" for k in range(1, 200)]),
    )
    choices = "".join([f"where(i<={k},x[i]^{k}," for k in range(300)]) + "0" + ")" * 300
    yield "brackets", "f = " + nested("(", "a")
    yield "digits", f"f = y[{'9' * 9_000}]"
    yield "entries", f"f = {filled('x[0]', '+')}"
    yield "choices in each other", f"f[i=0..n-1] = {choices}"
    yield "many values", "f[i=0..99999999, j=0..99999999] = a*i*j"
    for word in "()[]+*^.,;=<&~1ai\0":
        yield f"only {word!r}", "f = " + word * (LENGTH - 4)


def einsum_texts() -> Iterator[tuple[str, str]]:
    for operator in ("+", "-", "*", "/", "^", "@", "@@"):
        for piece in ("A", "|A|", "#('ij->ji',A)", "inv(A)"):
            yield f"{piece} {operator}", filled(piece, operator)
    for opening in ("inv(", "sin(", "#('ij->ji',", "#('ij,jk->ik',A,"):
        yield f"{opening} of each other", nested(opening, "A")
    for step in ("{0}@{0}", "{0}@@{0}", "{0}*{0}", "sin({0})*{0}", "inv({0})+{0}", "{0}^{0}",
                 "#('ij,kj->ik',{0},{0})", "#('ij,kl->ijkl',{0},{0})"):  # fmt: skip
        for first, times in (("A", 6), ("A", 60), ("extent(n)", 60), ("A/extent(n)", 60)):
            last = f"{doubled(step, first, times)};q{times - 2}"
            yield f"{step} of {first} {times} times", last
    letters = string.ascii_letters
    for count in (8, 26, 52):
        several = ",".join([letters[k] + letters[(k + 1) % count] for k in range(count)])
        yield f"ring of {count}", f"#('{several}->',{','.join(['A'] * count)})"
        axes = letters[:count]
        yield f"unit of {count}", f"#('{axes}->{axes}{axes}',T)"
    yield "one label often", f"#('i->{'i' * 9_900}',v)"
    yield "one label read often", f"#('{'i' * 9_900}->i',v)"
    yield "many operands", f"#('{','.join(['i'] * 1_900)}->i',{','.join(['v'] * 1_900)})"
    for word in "()[]+-*^.,;=<@|1aA#\0\ud800":
        yield f"only {word!r}", word * LENGTH


def extents() -> Iterator[tuple[str, str]]:
    for piece, between in (
        ("n", "+"), ("n", "*"), ("n", "/"), ("(n+m)", "*"), ("(n-1)", "*"), ("99", "*"),
        ("min(n,m)", "*"), ("n*(n-1)*(n-2)//6", "+"),
    ):  # fmt: skip
        yield f"{piece} {between}", filled(piece, between)
    for piece, between in (
        ("n{}", "+"),
        ("n{}", "*"),
        ("(n{0}+m{0})", "*"),
        ("(n{0}+{0})//7", "+"),
    ):
        yield f"{piece} {between}", numbered(piece, between)
    for opening, closing in (("(", ")"), ("min(", ",m)"), ("(", ")//2"), ("((", "//2)//3)*n")):
        yield f"{opening}…{closing}", nested(opening, "n", closing)
    floors = "//2//2222//4442//444//22" * 4
    yield "floors of the power of a sum", f"(-k-n//22-n//2-m-(n)//222*n-n//22-n+2)**3{floors}"
    yield "a wide minimum", f"min({numbered('n{}', ',')})"
    yield "minima of sums", f"min({numbered('n{}+1', ',')})"
    for piece in ("n^1000", "(n+m)^200", "(n//2)^888", "((n^60)^60)^60"):
        for between in "*+":
            yield f"{piece} {between}", filled(piece, between)
    for word in "()+-*/,m19.n\0":
        yield f"only {word!r}", word * LENGTH


def commands() -> Iterator[tuple[str, list[str]]]:
    for text, wrt in (
        ("exp(exp(a))", "a"), ("sin(sin(sin(sin(sin(sin(a))))))", "a"), ("softmax(x)", "x"),
        ("logdet(A*A')", "A"), (f"tr({'*'.join(['A'] * 200)})", "A"), ("norm2(x)*norm2(x)", "x"),
        ("tr(expm(A))", "A"), (doubled("sin({0})*{0}", "a", 40), "a"), ("tr(A^1000000)", "A"),
        (numbered("x{0}'*y{0}", "+"), ",".join([f"x{k}" for k in range(300)])),
    ):  # fmt: skip
        for order in ("2", "40"):
            row = ["derive", text, "--wrt", wrt, "--order", order]
            yield f"{text[:40]} {order}", row
    for form in ("text", "latex", "index", "einsum", "numpy"):
        row = ["derive", "sin(sin(sin(sin(sin(a)))))", "--wrt", "a", "--order", "5"]
        yield form, [*row, "--to", form]
    yield "compressed", ["derive", "tr(A^9)", "--wrt", "A", "--order", "2", "--compress"]
    yield "an extent", ["derive", "v", "--var", f"v={numbered('n{}', '+')}"]
    yield "a deep extent", ["derive", "v", "--var", f"v={nested('(', 'n')}"]
    yield "a wide extent", ["derive", "v", "--var", f"v={filled('(n+m)', '*')}"]
    yield "two dashes", ["derive", "v", "--var=--", "--limit=--"]
    yield "many extents", ["derive", "v", "--var", f"v={filled('n', ',')}", "--wrt", "v"]


#: What `derive` is to be declared of, by language.
DECLARED = {"matrix": ("A=n,n", "x=n"), "einsum": (), "index": ("x=n", "y=8", "A=n,n", "a=", "b=")}


def costly() -> Iterator[tuple[str, list[str]]]:
    """Commands whose work grows without nodes, or with nodes of many operands."""
    letters = string.ascii_letters
    pairs = ["".join(pair) for pair in itertools.combinations(letters[:52], 2)]
    graph = f"#('{','.join(pairs)}->',{','.join(['A'] * len(pairs))})"
    axes = letters[:20]
    outer = f"#('{','.join(axes)}->{axes}',{','.join(['x'] * len(axes))})"
    wide = ["".join(random.Random(k).sample(letters[:26], 20)) for k in range(40)]
    many = f"#('{','.join(wide)}->',{','.join(['T'] * len(wide))})"
    signs = [chr(0x4E00 + k) for k in range(170)]
    sparse = ["".join(random.Random(k).sample(signs[:100], 20)) for k in range(24)]
    loops = f"#('{','.join(sparse)}->',{','.join([f'T{k}' for k in range(len(sparse))])})"
    blocks = f"#('{''.join(signs)}->{''.join([3 * sign for sign in signs])}',T)"
    squares = f"{doubled('{0}*{0}', 'A', 20)};q18".replace(";", "\n")
    for name, language, text, *options in (
        ("a power of one entry", "index", f"f[i,j=0..n-1] = {filled('A[i,j]', '*')}"),
        ("many entries", "index", f"f = {numbered('y[0]*x[{}]', '+')}", "--to=index"),
        ("many sums", "index", f"f = {filled('sum[k=0..n-1](x[k]*a)', '+')}", "--to=index"),
        ("subscripts in each other", "index", f"f = {nested('y[', '0', ']')}"),
        ("a product of sums", "index", f"f[i] = {numbered('(x[i]+{})', '*')}", "--wrt=x"),
        ("shifts", "index", f"f[i=0..n-2000] = {numbered('x[i+{}]', '*')}", "--wrt=x"),
        ("a graph of 52", "einsum", graph, "--wrt=A"),
        ("arrays of many axes", "einsum", many, "--wrt=T", "--to=numpy"),
        ("arrays of many axes as C", "einsum", many, "--to=c"),
        ("loops in each other as C", "einsum", blocks, "--to=c"),
        ("many loops after each other as C", "einsum", loops, "--to=c"),
        ("squares of squares", "einsum", squares, "--to=text"),
        ("a long chain", "matrix", f"tr({filled('A*B', '*')})", "--wrt=A"),
        ("an outer product", "matrix", outer, "--wrt=x", "--order=2"),
        ("many numbers", "matrix", numbered("0.9{0:04}7654321*exp({0}*x)", "+")),
        (
            "quadratic forms as C",
            "matrix",
            numbered("x'*inv(A+{}*A')*x", "*")[:800] + "x",
            "--to=c",
        ),
        ("a long formula", "matrix", doubled("{0}*B*{0}", "A", 400), "--wrt=A", "--to=mathml"),
        ("a long program as C", "matrix", doubled("{0}.*exp({0})", "A", 400), "--to=c"),
        ("a long program", "matrix", doubled("{0}+{0}.^2", "A", 400), "--wrt=A", "--to=julia"),
        ("a nest of exponentials", "matrix", nested("exp(", "x"), "--wrt=x", "--order=2"),
    ):
        declared = [f"--var={row}" for row in DECLARED[language]]
        yield name, ["derive", text, "--language", language, *declared, *options]


def outcome(call: Callable[[], Any]) -> str:
    """`done`, `refused` with the error's name, or what else came."""
    try:
        call()
    except tc.Error as error:
        return f"refused {type(error).__name__}"
    except (Exception, SystemExit) as error:
        return f"FAILED {type(error).__name__}: {str(error)[:200]!r}"
    return "done"


def run_command(arguments: list[str]) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = main(arguments)
    if status == 2:
        raise tc.Error(said.getvalue())


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, text in matrix_texts():
        yield f"matrix: {name}", lambda text=text: tc.parse(text)
    for name, text in index_texts():
        yield f"index: {name}", lambda text=text: tc.parse_index(text, **ARRAYS)
    for name, text in einsum_texts():
        yield f"einsum: {name}", lambda text=text: tc.parse_einsum(text)
    for name, text in extents():
        yield f"extent: {name}", lambda text=text: tc.var("v", (text,))
    for name, arguments in (*commands(), *costly()):
        yield f"command: {name}", lambda arguments=arguments: run_command(arguments)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    signal.alarm(SECONDS)
    for what, call in calls():
        with tc.limits(nodes=NODES, steps=STEPS):
            print(f"{what!a} -> {outcome(call)}", flush=True)
    print("all read")
