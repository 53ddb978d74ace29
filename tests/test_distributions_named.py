"""The site names every distribution that takes expressions."""

from __future__ import annotations

import re

from tcalc.scipy.stats import CONTINUOUS, DISCRETE, VECTORS
from tests.documents import ROOT


def test_pages_name_all_distributions() -> None:
    paragraphs = (ROOT / "docs" / "derivatives.md").read_text().split("\n\n")
    (named,) = [p for p in paragraphs if p.startswith("Distributions that take expressions")]
    assert set(re.findall(r"`(\w+)`", named)) == {*CONTINUOUS, *DISCRETE, *VECTORS}
