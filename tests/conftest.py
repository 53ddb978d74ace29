"""Settings that hold for every test; the environment is set before NumPy and JAX are loaded."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
# Compilers beside the tests would take their time, and change the last digits.
os.environ.setdefault("TCALC_BACKEND", "numpy")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

settings.register_profile("tcalc", deadline=None, print_blob=True)
settings.load_profile("tcalc")


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of steps that C has asked Python for while loops ran."""
    from tcalc.backends.c import asked  # loads NumPy, which reads the environment

    found: list[str] = []
    done = asked._done

    def counted(question: Any, addresses: Any) -> None:
        found.append(question.step.kind)
        done(question, addresses)

    monkeypatch.setattr(asked, "_done", counted)
    return found
