"""Settings that hold for every test; the environment is set before NumPy and JAX are loaded."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
# Compilers beside the tests would take their time, and change the last digits.
os.environ.setdefault("TCALC_BACKEND", "numpy")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# What compilers make is run once. Tests of vectors and random programs compile as users do.
if shutil.which("cc"):
    os.environ.setdefault("CC", str(Path(__file__).with_name("quick_cc")))
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)

# Shells start what runs in the background with interrupts ignored, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("tcalc", deadline=None, print_blob=True)
settings.load_profile("tcalc")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _of_device(item):
            item.add_marker(pytest.mark.gpu)


def pytest_collection_finish() -> None:
    """Tens of thousands of tests are no garbage: collections need not look at them again."""
    gc.collect()
    gc.freeze()


def _of_device(item: pytest.Item) -> bool:
    """Does a test run on a device, or on what stands in for it?"""
    called = getattr(item, "callspec", None)
    return called is not None and called.params.get("backend") == "cupy"


@pytest.fixture
def device() -> Iterator[None]:
    """A device, or what stands in for it."""
    from tests.cupy_stand_in import some_device  # loads NumPy, which reads the environment

    with some_device():
        yield


@pytest.fixture(autouse=True)
def _where_it_runs(request: pytest.FixtureRequest) -> None:
    if _of_device(request.node):
        request.getfixturevalue("device")


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
