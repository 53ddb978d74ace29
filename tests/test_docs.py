"""The documentation's site: built with warnings as errors, whole, linked, local, fit to be seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import pytest

import tcalc as tc
from tests.documents import ROOT

for _package in ("sphinx", "numpydoc", "sphinx_gallery", "myst_parser", "furo"):
    pytest.importorskip(_package, reason=f"the extra `docs` is not installed: no {_package}")

#: Where pages may send a reader.
OUTSIDE = {
    "cupy.dev", "keepachangelog.com", "semver.org", "github.com", "pradyunsg.me",
    "www.sphinx-doc.org", "sphinx-gallery.github.io", "127.0.0.1:8000",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, from a copy of what they are made of: no folder of the repository is written."""
    folder = tmp_path_factory.mktemp("site")
    copied = "tcalc", "web", "docs", "README.md", "benchmarks", "tests"
    for name in copied:
        (folder / name).symlink_to(ROOT / name) if name != "docs" else copy(ROOT / name, folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "docs", "html"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return folder / "html"


def copy(source: Path, folder: Path) -> None:
    """The files of the pages' folder without what an earlier build left there."""
    made = {"_build", "examples", "models", "reference", "__pycache__"}
    for path in source.rglob("*"):
        inner = path.relative_to(source)
        if path.is_file() and inner.parts[0] not in made:
            target = folder / source.name / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())


class Page(HTMLParser):
    """The identifiers of a page, where its links lead, and what it loads."""

    LOADED: ClassVar = {
        "img": "src",
        "script": "src",
        "link": "href",
        "source": "src",
        "iframe": "src",
    }

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.unnamed = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.ids.update(told[key] for key in ("id", "name") if told.get(key))
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        elif told.get(self.LOADED.get(tag, "")):
            self.loads.append(told[self.LOADED[tag]])
        self.unnamed += tag == "img" and "alt" not in told


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_links_lead_to_pages_and_places(pages: dict[Path, Page]) -> None:
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.netloc:
                assert parts.netloc in OUTSIDE, f"{path.name}: {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists() or (
                place and target in pages and place not in pages[target].ids
            ):
                wrong.append(f"{path.name}: {link}")
    assert not wrong


def test_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for link in page.loads:
            parts = urlsplit(link)
            assert not parts.netloc, f"{path.name}: {link}"
            assert parts.scheme in ("", "data")
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", style.read_text("utf-8")), style


def test_pictures_have_words(pages: dict[Path, Page]) -> None:
    assert not [path.name for path, page in pages.items() if page.unnamed]


MODULES = [
    tc, tc.linalg, tc.scipy.special, tc.scipy.stats, tc.scipy.linalg,
    *(import_module(f"tcalc.autograd{name}") for name in ("", ".extend", ".optimizers")),
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(pages: dict[Path, Page], module: Any) -> None:
    told = [page.ids for path, page in pages.items() if path.parent.name == "reference"]
    ids = set().union(*told)
    other = module not in (tc, tc.linalg)  # a namespace of another library's names
    within = ".".join(module.__name__.split(".")[:2]) if other else "tcalc"
    names = [
        name
        for name in dir(module)
        if not name.startswith("_")
        and (isfunction(thing := getattr(module, name)) or isclass(thing))
        and str(thing.__module__).startswith(within)
    ]
    assert names
    assert not [name for name in names if f"{module.__name__}.{name}" not in ids]


def notebooks(site: Path) -> list[Path]:
    return sorted((site.parent / "docs" / "examples").glob("*.ipynb"))


def test_notebooks_run(site: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="notebooks need nbclient")
    nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")
    pytest.importorskip("ipykernel", reason="notebooks need a kernel")
    found = notebooks(site)
    assert len(found) == len(list((ROOT / "docs" / "gallery").glob("plot_*.py")))
    for path in found:
        notebook = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        shown = [out for cell in notebook.cells for out in cell.get("outputs", [])]
        assert any("image/png" in out.get("data", {}) for out in shown), path.name


# --- in a browser ---------------------------------------------------------------------------------

SEEN = ["index", "start", "languages", "derivatives", "linear_algebra", "reference/derivatives",
        "examples/plot_gaussian_process", "models/population_glm"]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    from playwright.sync_api import sync_playwright

    from tests.test_web_browser import ARGUMENTS, CHROMIUM

    if not CHROMIUM:
        pytest.skip("no Chromium (Debian's package `chromium`)")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_pages_fit_any_width(site: Path, browser: Any, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(request.url))
    for name in SEEN:
        page.goto((site / f"{name}.html").as_uri(), timeout=180_000)  # machines may be busy
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} pixels wide"
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        levels = [int(number) for number in re.findall(r"\d+", ground)[:3]]
        assert (sum(levels) < 3 * 128) == (scheme == "dark"), ground
    assert not problems
    context.close()
