"""The web form in a real browser: with and without scripts, by keyboard, narrow, dark, accessible.

Chromium is Debian's (``TCALC_CHROMIUM`` names another), axe-core is npm's (``TCALC_AXE`` names its
file); where they are not, the tests are skipped and say so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `web` is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import sync_playwright

from tests.web_server import served

CHROMIUM = os.environ.get("TCALC_CHROMIUM") or shutil.which("chromium") or ""
AXE = Path(os.environ.get("TCALC_AXE") or "no such file")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
LOGISTIC = "/?e=sum(log(1+%2B+exp(-y+.*+(X*w))))&d=w&o=2&k=1&c=1"

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium (Debian's package `chromium`)")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(base_url=address)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda m: told.append(m.text) if "Content Security" in m.text else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    yield page
    assert not told
    context.close()


def test_typing_and_deriving_shows_the_result_in_place(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Expression").fill("x'*A*x")
    page.get_by_label("With respect to").fill("x")
    page.get_by_role("button", name="Derive").click()
    page.get_by_role("heading", name="Result").wait_for()
    assert "(A + A')*x" in page.locator("#output-text code").inner_text()
    assert "e=x" in page.url
    # What was guessed can be edited.
    page.get_by_label("Property of A").select_option("symmetric")
    page.get_by_role("button", name="Derive").click()
    page.locator("#output-text code", has_text="2*A*x").wait_for()
    page.go_back()
    page.locator("#output-text code", has_text="(A + A')*x").wait_for()


def test_formulas_are_mathml(page: Any) -> None:
    page.goto(LOGISTIC)
    box = page.locator(".formula math").bounding_box()
    assert box["width"] > 50
    assert box["height"] > 10


def test_tabs_and_copying(page: Any) -> None:
    page.goto(LOGISTIC)
    page.get_by_role("tab", name="NumPy").click()
    panel = page.get_by_role("tabpanel", name="NumPy")
    panel.get_by_role("button", name="Copy").click()
    panel.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "import numpy as np" in copied
    assert page.get_by_role("tabpanel", name="Text").count() == 0
    page.keyboard.press("Tab")


def test_errors_are_shown_where_they_are(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Expression").fill("x'*A*+")
    page.get_by_role("button", name="Derive").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "column" in alert.inner_text()
    field = page.get_by_label("Expression")
    assert field.input_value() == "x'*A*+"
    assert field.get_attribute("aria-invalid") == "true"
    assert page.evaluate("document.activeElement.id") == "e"


def test_links_say_everything(page: Any, browser: Any, address: str) -> None:
    page.goto(LOGISTIC + "&vn=X&vs=m,+n&vp=&vn=w&vs=n&vp=nonnegative")
    link = page.get_by_role("link", name="Link to this").get_attribute("href")
    text = page.locator("#output-text code").inner_text()
    other = browser.new_context(base_url=address).new_page()
    other.goto(link)
    assert other.locator("#output-text code").inner_text() == text
    assert other.get_by_label("Property of w").input_value() == "nonnegative"
    embedded = other.get_by_role("link", name="the formula alone").get_attribute("href")
    other.goto(embedded)
    assert other.locator("math").count() == 1
    other.context.close()


def test_without_scripts(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Expression").fill("norm2(A*x - y)^2")
    page.get_by_label("With respect to").fill("x")
    page.get_by_role("button", name="Derive").click()
    assert "A'" in page.locator("#output-text code").inner_text()
    assert page.locator("#output-numpy code").is_visible()
    assert page.get_by_role("button", name="Copy").count() == 0
    context.close()


def test_by_keyboard_alone(page: Any) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "e"
    page.keyboard.type("sum(x.^3)")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.type("x")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Result").wait_for()
    page.get_by_role("tab", name="Text").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="LaTeX").get_attribute("aria-selected") == "true"
    assert page.get_by_role("tabpanel", name="LaTeX").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_pages_do_not_scroll_sideways(browser: Any, address: str, scheme: str) -> None:
    context = browser.new_context(
        base_url=address, viewport={"width": 360, "height": 740}, color_scheme=scheme
    )
    page = context.new_page()
    for place in ("/", LOGISTIC, "/?e=x'*A*%2B&d=x", "/interface"):
        page.goto(place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, place
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    context.close()


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core (npm's package; TCALC_AXE names it)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["/", LOGISTIC, "/?e=x'*A*%2B&d=x", "/interface", "/embed?e=x"])
def test_axe_finds_nothing(browser: Any, address: str, place: str, scheme: str) -> None:
    context = browser.new_context(base_url=address, bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    page.goto(place)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
    assert not found
    context.close()
