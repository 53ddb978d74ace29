"""The examples of web/, on reduced sizes: what they find, and the page made of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from web.examples import (
    bundle_adjustment,
    choice_models,
    matrix_factorisation,
    population_glm,
    random_effects,
)
from web.examples.__main__ import EXAMPLES
from web.examples.page import write_page
from web.examples.report import Found, size

for _library in ("matplotlib", "sklearn", "statsmodels"):
    pytest.importorskip(_library, reason=f"the examples need {_library}, of the test extra")

REDUCED: dict[ModuleType, dict[str, Any]] = {
    matrix_factorisation: {"images": 200, "ranks": (3, 5), "sweeps": 40},
    population_glm: {"counts": (50, 100, 200), "compared": 5},
    choice_models: {},
    bundle_adjustment: {"scenes": ((5, 20, 3), (8, 60, 4))},
    random_effects: {"count": 9},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[ModuleType, Found]:
    return {module: module.main(folder, **sizes) for module, sizes in REDUCED.items()}


def test_all_examples_are_run() -> None:
    folder = Path(choice_models.__file__).parent
    scripts = {path.stem for path in folder.glob("*.py") if "\ndef main(" in path.read_text()}
    assert scripts == {module.__name__.rsplit(".", 1)[-1] for module in EXAMPLES}
    assert set(REDUCED) == set(EXAMPLES)


def test_matrix_factorisation_reaches_the_best_value(found: dict[ModuleType, Found]) -> None:
    facts = found[matrix_factorisation].facts
    for k in (3, 5):
        assert facts[f"gap {k}"] < 1e-9
        assert facts[f"converged {k}"]
        assert facts[f"bytes {k}"] == 8 * (k * k + 1)  # the core V'V and the penalty


def test_population_glm_grows_in_proportion(found: dict[ModuleType, Found]) -> None:
    facts = found[population_glm].facts
    assert all(facts[f"converged {count}"] for count in facts["counts"])
    p = population_glm.FEATURES
    assert facts["bytes"] == [8 * count * p * p for count in facts["counts"]]
    assert facts["difference"] < 1e-4
    assert 0.9 < facts["covered"] < 0.99


def test_choice_models_agree_with_statsmodels(found: dict[ModuleType, Found]) -> None:
    facts = found[choice_models].facts
    assert facts["converged"]
    differences = [facts[f"{which} {what}"] for which in ("travel", "vote")
                   for what in ("estimates", "errors")]  # fmt: skip
    assert max(differences) < 1e-4


def test_bundle_adjustment_explains_the_pixels(found: dict[ModuleType, Found]) -> None:
    facts = found[bundle_adjustment].facts
    assert facts["converged"]
    assert max(facts["after"]) < 1.1 * 2**0.5 * bundle_adjustment.NOISE
    for held, (cameras, points, views) in zip(
        facts["bytes"], REDUCED[bundle_adjustment]["scenes"], strict=True
    ):
        blocks = 36 * cameras + 9 * points + 2 * 18 * points * views
        assert held < 1.2 * 8 * (blocks + 2 * 2 * points * views)  # and the tables of who saw what


def test_random_effects_agree_with_quadrature_and_statsmodels(
    found: dict[ModuleType, Found],
) -> None:
    facts = found[random_effects].facts
    assert facts["converged"]
    assert 0.05 < facts["s"] < 0.8
    assert facts["laplace"] < 3
    assert facts["without groups"] < 1e-4
    assert facts["errors without"] < 1e-4
    assert facts["bytes"] < facts["dense"] / 20


class Links(HTMLParser):
    """What a page refers to, and whether its elements nest."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.files: list[str] = []
        self.tags: set[str] = set()
        self.pictures_without_words = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        given = dict(attrs)
        self.files += [given[key] or "" for key in ("src", "href") if key in given]
        self.pictures_without_words += tag == "img" and not given.get("alt")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_complete_and_fetches_nothing(
    folder: Path, found: dict[ModuleType, Found]
) -> None:
    page = write_page(folder, list(found.items())).read_text(encoding="utf-8")
    links = Links()
    links.feed(page)
    assert not links.open
    assert "script" not in links.tags
    assert not links.pictures_without_words
    for file in links.files:
        if file.startswith("#"):
            assert f'id="{file[1:]}"' in page
        else:
            assert (folder / file).is_file(), file
    drawn = {path.name for path in folder.glob("*.svg")}
    assert drawn <= set(links.files)
    assert not any("<script" in (folder / file).read_text() for file in drawn)
    assert not re.search(r"url\(|@import", (folder / "style.css").read_text())
    for result in found.values():
        assert result.formulas
        assert result.figures


def test_sizes_read_well() -> None:
    assert [size(b) for b in (0, 208, 1024, 3e6, 5e10)] == [
        "0 bytes", "208 bytes", "1 KiB", "2.86 MiB", "46.6 GiB",
    ]  # fmt: skip
