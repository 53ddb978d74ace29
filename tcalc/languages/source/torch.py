"""PyTorch source: on the device and in the dtype of what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from ...graph.extents import Extent, Shape, extent_from, form_of
from .array_operators import Template
from .array_programs import tuple_of
from .arrays import ArrayLanguage
from .infix import operand
from .language import Code, Operator
from .places import View

#: SciPy's functions that PyTorch does not have.
HOST = ("betainc", "iv", "ive", "jv", "kv", "stdtr", "yv")


class Torch(ArrayLanguage):
    """PyTorch source."""

    name = "torch"
    library = "torch"
    imports: ClassVar[Mapping[str, str]] = {
        "itertools": "import itertools",
        "math": "import math",
        "numpy": "import numpy",
        "scipy.linalg": "import scipy.linalg",
        "scipy.special": "import scipy.special",
        "torch": "import torch",
    }
    heads: ClassVar[Mapping[str, tuple[str, str]]] = {
        "dtype": ("{}.dtype", "torch.float64"),
        "device": ("{}.device", "None"),
    }
    axis, array_of, as_array, cast, permute = "dim", "tensor", "as_tensor", "to", "permute"
    places = ", device=device"
    words: ClassVar[Sequence[tuple[str, str]]] = [
        (r"\baxis=", "dim="),
        (r"keepdims=", "keepdim="),
        (r"dtype=(\w+)\.dtype", r"dtype=\1.dtype, device=\1.device"),
        (r"\.astype\(", ".to("),
        (r"\.copy\(\)", ".clone()"),
        (r"\.(max|min)\(dim=", r".a\1(dim="),
        (r"kind='stable'", "stable=True"),
        (r"special\.(gammaln|logsumexp)\b", r"torch.\1"),
        (r"torch\.gammaln", "torch.lgamma"),
        (r"(?<!\.)\bspecial\.", "torch.special."),
        (r"    with np\.errstate\(all=\"ignore\"\):\n        ", "    "),
        (r"np\.add\.at\((\w+), (\w+), (\w+)\)", r"\1.index_put_((\2,), \3, accumulate=True)"),
        (r"np\.asarray\(", "torch.as_tensor("),
        (r"np\.concatenate\(", "torch.cat("),
        (r"np\.(tri[lu])_indices\((\w+), (\w+)\)", r"torch.\1_indices(\2, \2, \3)"),
        (r"np\.arange\(v\.shape\[-1\]\)", "torch.arange(v.shape[-1], device=v.device)"),
        (r"np\.kron\((.*), e\)", r"torch.kron(\1, e.contiguous())"),
        (r"np\.take_along_axis\(", "torch.take_along_dim("),
        (r"np\.mod\(", "torch.remainder("),
        (r"np\.rint\(", "torch.round("),
        (r"np\.lib\.stride_tricks\.", "torch."),
        (r"a\.strides\b", "a.stride()"),
    ]
    own_operators: ClassVar[Mapping[str, Template]] = {
        "beta": "_gamma_sign({0}) * _gamma_sign({1}) * _gamma_sign({0} + {1})"
        " * torch.exp(_log_beta({0}, {1}))",
        "betaln": "_log_beta({0}, {1})",
        "cbrt": "torch.sign({0}) * torch.abs({0}) ** (1 / 3)",
        "cumsum": "torch.cumsum({0}, dim=-1)",
        "erfcinv": "-torch.special.ndtri({0} / 2) * 0.5**0.5",
        "gamma": "_gamma_sign({0}) * torch.exp(torch.lgamma({0}))",
        "gammasgn": "_gamma_sign({0})",
        "polygamma": "_polygamma({0}, {1})",
        "prod": "{0}.flatten({first}).prod(dim=-1)",
        "revcumsum": "torch.cumsum({0}.flip(-1), dim=-1).flip(-1)",
        "rgamma": "_gamma_sign({0}) * torch.exp(-torch.lgamma({0}))",
        "selection": "{0}[..., None] % {p[0]} == torch.arange({p[0]}, device=device)",
        "spherical_jn": "_by_host(scipy.special.spherical_jn, {0}.long(), {1})",
        "weighted_logsumexp": "_logsumexp({0}, {axes}, {1})",
        **{name: f"_by_host(scipy.special.{name}, {{operands}})" for name in HOST},
    }
    floats = '''
def floats(*given, double=False):
    """Tensors of one dtype and device: float32 where all arrays are that, else float64."""
    device = next((a.device for a in given if torch.is_tensor(a)), None)
    kinds = [str(getattr(a, "dtype", "")) for a in given if not isinstance(a, (bool, int, float))]
    single = not double and kinds and all(kind.endswith(("float32", "float16")) for kind in kinds)
    dtype = torch.float32 if single else torch.float64
    found = [torch.as_tensor(a, dtype=dtype, device=device) for a in given]
    return found if found[1:] else found[0]
'''
    own_helpers: ClassVar[Sequence[str]] = (
        '''
def _by_host(function, *tensors):
    """A function of entries that PyTorch does not have, computed by the host."""
    like = tensors[-1]
    found = function(*[a.detach().cpu().numpy() for a in tensors])
    return torch.as_tensor(found, dtype=like.dtype, device=like.device)
''',
        """
def _fold(step, states, slices, fixed, count, backward, dtype, device):
    rows, states = [], [torch.as_tensor(s, dtype=dtype, device=device) for s in states]
    before = states
    for t in reversed(range(count)) if backward else range(count):
        after = step(*before, *[x[t] for x in slices], *fixed)
        rows.append((after, before))
        before = after
    rows = rows[::-1] if backward else rows
    found = [*before]
    for k in 0, 1:
        for j, s in enumerate(states):
            every = [row[k][j] for row in rows]
            found.append(torch.stack(every) if rows else s.new_zeros((0, *s.shape)))
    return found
""",
        """
def _fold_bounded(step, states, slices, fixed, count, backward, made, dtype, device):
    every = [[torch.as_tensor(s, dtype=dtype, device=device) for s in states]]
    most = count if made is None else min(max(int(made), 0), count)
    while len(every) <= most and (made is not None or not every[-1][-1]):
        t = most - len(every) if backward else len(every) - 1
        every.append(step(*every[-1], *[x[t] for x in slices], *fixed))
    done, shown = len(every) - 1, range(len(states) - (made is None))
    found = [every[-1][k] for k in shown]
    for shift in (0, 1) if backward else (1, 0):
        for k in shown:
            rows = [row[k] for row in (every[::-1] if backward else every)]
            rows += [torch.zeros_like(rows[0])] * (count - done)
            found.append(torch.stack(rows)[shift:count + shift])
    steps = torch.as_tensor(done, dtype=dtype, device=device)
    return found if made is not None else [*found, steps]
""",
        """
def _gamma_sign(x):
    return torch.where((x < 0) & (torch.floor(x) % 2 != 0), -1, 1).to(x.dtype)
""",
        """
def _log_beta(a, b):
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
""",
        """
def _logsumexp(a, dim, b):
    top = (torch.amax if a.numel() else torch.sum)(a, dim=dim, keepdim=True)
    top = torch.where(torch.isfinite(top), top, 0)
    found = torch.log((b * torch.exp(a - top)).sum(dim=dim, keepdim=True)) + top
    return found.squeeze(dim)
""",
        """
def _of_matrices(name, a):
    if name == "expm":
        return torch.linalg.matrix_exp(a)
    found = [getattr(scipy.linalg, name)(m) for m in a.reshape(-1, *a.shape[-2:]).cpu().numpy()]
    found = numpy.real(numpy.array(found)).reshape(a.shape)
    return torch.as_tensor(found, dtype=a.dtype, device=a.device)
""",
        """
def _place(whole, a, starts, steps):
    starts, strides, flipped = _strided(whole, starts, steps, a.shape)
    first = whole[tuple([slice(start, None) for start in starts])]
    places = torch.as_strided(first, a.shape, strides)
    places += a.flip(flipped) if flipped else a
""",
        '''
def _strided(a, starts, steps, shape):
    """Strides that are not negative, and the axes to flip for it."""
    strides = [sum(n * s for n, s in zip(step, a.stride())) for step in zip(*steps)]
    flipped = [k for k, stride in enumerate(strides) if stride < 0]
    starts = [
        max(0, start + sum(step[k] * (shape[k] - 1) for k in flipped))
        for start, step in zip(starts, steps)
    ]
    return starts, [abs(stride) for stride in strides], flipped
''',
        """
def _window(a, starts, steps, shape):
    starts, strides, flipped = _strided(a, starts, steps, shape)
    first = a[tuple([slice(start, None) for start in starts])]
    places = torch.as_strided(first, shape, strides)
    return places.flip(flipped) if flipped else places
""",
    )

    def kind(self, dtype: str) -> str:
        device = f"{dtype.removesuffix('.dtype')}.device" if dtype.endswith(".dtype") else "device"
        return f"dtype={dtype}, device={device}"

    def given(self, arrays: Sequence[str], body: Sequence[str]) -> str:
        double = any("torch.float64" in line for line in body)
        names = ", ".join(arrays)
        return f"{names} = floats({names}, double=True)" if double else super().given(arrays, body)

    def array(self, value: np.ndarray) -> Code:
        """In float32 it promotes nothing, and PyTorch's products take tensors of one dtype."""
        found = super().array(value)
        return self.constant(found) if value.dtype == np.float32 else found

    def constant(self, c: Code) -> Code:
        return Code(f"{operand(c)}.to({self.kind(self.dtype)})")

    def copied(self, c: Code) -> str:
        return f"{operand(c)}.clone()"

    def full(self, c: Code, shape: Shape) -> Code:
        if c.weak:
            return super().full(c, shape)
        return Code(f"{operand(c)}.expand({self.shape(shape)})", view=True)

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        ends = [n for pair in reversed(margins) for n in self.ends(pair)]
        return Code(f"torch.nn.functional.pad({c.text}, {tuple_of(ends)})")

    def inner(self, a: Code, b: Code) -> Code:
        return Code(f"({operand(a)} * {operand(b)}).sum()")

    def window(self, c: Code, whole: Shape, view: View) -> Code:
        ascending, flipped = _ascending(view)
        found = super().window(c, whole, ascending)
        return Code(f"{operand(found)}.flip({flipped})") if flipped else found

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        ascending, flipped = _ascending(view)
        turned = Code(f"{operand(c)}.flip({flipped})") if flipped else c
        return super().place(turned, whole, ascending, onto)

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        template = self.template(op)
        signs = template is not None and not any(part in template for part in ("torch.", "_"))
        given = args if signs or op.name == "eye" else [self.tensor(c) for c in args]
        if op.name == "where" and not args[0].condition:
            given = [Code(f"{operand(given[0])}.bool()"), *given[1:]]
        return super().call(op, given)

    def tensor(self, c: Code) -> Code:
        """A number as a tensor, which functions take."""
        return Code(f"torch.tensor({c.text}, {self.kind(self.dtype)})") if c.weak else c


def _ascending(view: View) -> tuple[View, tuple[int, ...]]:
    """The view without axes along which it goes back, and these axes."""
    moves = list(zip(*view.steps, strict=True))
    flipped = tuple([k for k, c in enumerate(moves) if min(c) < 0 and max(c) <= 0])
    starts, steps = [], []
    for first, row in zip(view.starts, view.steps, strict=True):
        last = [(form_of(view.shape[k]) - 1) * row[k] for k in flipped]
        starts.append(extent_from(sum(last, form_of(first))))
        steps.append(tuple([-c if k in flipped else c for k, c in enumerate(row)]))
    return View(tuple(starts), tuple(steps), view.shape), flipped
