"""Symbolic time against depth: the net's Hessian, and one long chain of operations."""

from __future__ import annotations

import time
from typing import Any

import tcalc as tc

from . import processes
from .problems import net

WIDTH = 20  # of the nets whose plan is made


class Clock:
    """Seconds of one step after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.start = time.perf_counter()

    def done(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = now - self.start
        self.start = now


def run(kind: str, count: int) -> dict[str, Any]:
    return {"net": layers, "chain": chain}[kind](count)


def layers(count: int) -> dict[str, Any]:
    """The Hessian with respect to the first of `count` layers."""
    clock = Clock()
    loss = net.expression(count)
    clock.done("build")
    hessian = tc.hessian(loss, "W1")
    clock.done("derive")
    shapes = {name: (WIDTH,) * variable.ndim for name, variable in loss.variables.items()}
    flops = tc.compile(hessian, structured=True).plan_for(**shapes).flops
    clock.done("plan")
    return {"layers": count, "seconds": clock.seconds, "flops": flops}


def chain(count: int) -> dict[str, Any]:
    """A product and a sine in turn, `count` operations in all."""
    clock = Clock()
    x = tc.var("x")
    e: tc.Expr = x
    for _ in range(count // 2):
        e = tc.sin(e) * x
    clock.done("built")
    slope = tc.grad(e, x)
    clock.done("differentiated")
    tc.compile((e, slope))(x=1.5)
    clock.done("evaluated")
    text = str(e)
    clock.done("printed")
    return {"operations": count, "seconds": clock.seconds, "characters": len(text)}


if __name__ == "__main__":
    processes.serve(run)
