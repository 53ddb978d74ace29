"""Numbers that have a name in every language of text, unless a variable is declared by it."""

from __future__ import annotations

import math

NUMBERS = {"pi": math.pi, "inf": math.inf, "nan": math.nan}
