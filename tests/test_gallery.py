"""The gallery: every query on one page, escaped, with nothing to fetch and nothing to run."""

from __future__ import annotations

from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.app.gallery import derived, gallery_page
from tcalc.app.queries import GALLERY, Query
from tcalc.languages.registry import TEXT_LANGUAGES
from tcalc.languages.source.registry import LANGUAGES

QUERIES = [query for queries in GALLERY.values() for query in queries]
VOID = {"meta", "br", "mspace"}


class Page(HTMLParser):
    """The texts of elements by name, and the attributes; elements must close in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = defaultdict(list)
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder: Path = tmp_path_factory.mktemp("gallery") / "out"
    assert main(["gallery", str(folder)]) == 0
    assert [file.name for file in folder.iterdir()] == ["index.html"]
    return Page((folder / "index.html").read_text(encoding="utf-8"))


def test_every_query_is_there_with_its_derivative_in_every_language(page: Page) -> None:
    assert len(QUERIES) >= 60
    forms = [row.form for row in TEXT_LANGUAGES.values() if row.write]
    assert page.texts["summary"] == [*forms, *LANGUAGES] * len(QUERIES)
    for query in QUERIES:
        e, _ = derived(query)
        for text in (query.text, str(e), tc.to_latex(e), tc.to_mathml(e), tc.to_code(e)):
            assert text in page.texts["code"], query.name
    assert set(GALLERY) <= set(page.texts["h2"])


def test_the_page_runs_nothing_and_fetches_nothing(page: Page) -> None:
    assert not {"script", "link", "img", "iframe"} & set(page.texts)
    assert all(not name.startswith("on") for name, _ in page.attributes)
    targets = [value or "" for name, value in page.attributes if name in ("href", "src")]
    assert targets
    assert all(value.startswith("#") for value in targets)


def test_all_text_is_escaped() -> None:
    query = Query('<b>"&', "x=n", "sum(where(x < 1, x, -x))", "x")
    page = Page(gallery_page({"<i>&": (query,)}))
    assert page.texts["h2"] == ["<i>&"]
    assert page.texts["h3"] == ['<b>"&']
    assert query.text in page.texts["code"]
    assert ("name", query.name) in page.attributes
    assert not {"b", "i"} & set(page.texts)
