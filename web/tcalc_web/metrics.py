"""Counts and times in the text format that Prometheus reads."""

from __future__ import annotations

from collections import Counter

from .evaluator import Evaluator

#: Upper bounds of times in seconds.
BOUNDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """Answers by status and by how long they took."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.within: Counter[float] = Counter()
        self.seconds = 0.0

    def count(self, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        self.seconds += seconds
        self.within.update([bound for bound in BOUNDS if seconds <= bound])

    def text(self, evaluator: Evaluator) -> str:
        total = sum(self.statuses.values())
        lines = ["# TYPE tcalc_queries_total counter"]
        lines += [
            f'tcalc_queries_total{{status="{status}"}} {count}'
            for status, count in sorted(self.statuses.items())
        ]
        lines.append("# TYPE tcalc_query_seconds histogram")
        lines += [f'tcalc_query_seconds_bucket{{le="{b}"}} {self.within[b]}' for b in BOUNDS]
        lines += [
            f'tcalc_query_seconds_bucket{{le="+Inf"}} {total}',
            f"tcalc_query_seconds_sum {self.seconds:.6f}",
            f"tcalc_query_seconds_count {total}",
        ]
        for name, value in (
            ("running", evaluator.running),
            ("waiting", evaluator.waiting),
            ("restarts", evaluator.restarts),
        ):
            lines += [f"# TYPE tcalc_{name} gauge", f"tcalc_{name} {value}"]
        return "\n".join(lines) + "\n"
