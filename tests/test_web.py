"""The web form's processes: answers, errors, limits, and what outlives a process that ends."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `web` is not installed")

from dataclasses import replace

from fastapi.testclient import TestClient
from tcalc_web.application import Service, application
from tcalc_web.examples import EXAMPLES, Example
from tcalc_web.gate import Gate, network
from tcalc_web.guess import guessed
from tcalc_web.settings import SETTINGS

import tcalc as tc
from tests.web_server import OPEN

SHAPES = {"A": {"shape": ["m", "n"]}, "x": {"shape": ["m"]}}
DERIVE = "/api/v1/derive"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(application(OPEN)) as client:
        until(lambda: client.get("/health").status_code == 200)
        yield client


def until(true: Any, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def service(client: TestClient) -> Service:
    found: Service = client.app.state.service  # type: ignore[attr-defined]
    return found


def test_an_answer_has_what_was_asked_for(client: TestClient) -> None:
    query = {
        "expression": "x'*A*x",
        "variables": {"A": {"shape": ["n", "n"], "properties": ["symmetric"]}},
        "wrt": ["x"],
        "outputs": ["text", "numpy"],
        "sizes": {"n": 10},
        "check": True,
        "compress": True,
    }
    answer = client.post(DERIVE, json=query)
    assert answer.status_code == 200
    body = answer.json()
    assert body["shape"] == ["n"]
    assert body["outputs"]["text"] == "2*A*x"
    assert body["outputs"].keys() == {"text", "numpy"}
    assert body["check"]["agrees"]
    assert body["check"]["error"] < 1e-7
    assert {row["mode"] for row in body["modes"]} == {"forward", "reverse", "cross-country"}
    assert "2*A*x" in body["compressed"]


@pytest.mark.parametrize(
    ("query", "status", "kind", "place"),
    [
        ({"expression": "x'*A*"}, 422, "ParseError", (1, 6)),
        ({"expression": "A*x", "variables": SHAPES}, 422, "ShapeError", (1, 2)),
        ({"expression": "x", "order": 9}, 422, "InvalidQuery", (None, None)),
        ({"expression": "x", "unknown": 1}, 422, "InvalidQuery", (None, None)),
        ({"expression": "x" * 5000}, 422, "InvalidQuery", (1, 4097)),
        ({"expression": "x;\n" * 2000}, 422, "InvalidQuery", (1366, 2)),
        ({"expression": ""}, 422, "InvalidQuery", (1, 1)),
        ({"expression": "x", "wrt": ["nobody"]}, 422, "TypeError", (None, None)),
        ({"expression": "sum(x)" + " " * 20_000}, 413, "TooLarge", (None, None)),
    ],
    ids=str,
)  # fmt: skip
def test_bad_queries_are_told_where_and_why(
    client: TestClient, query: dict[str, Any], status: int, kind: str, place: tuple[Any, Any]
) -> None:
    answer = client.post(DERIVE, json=query)
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"]) == (status, kind), error
    assert (error.get("line"), error.get("column")) == place


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"expression": "x",\n "wrt": x}', "this is no JSON: Expecting value, line 2, column 9"),
        ("", 'a query is a JSON object, such as {"expression"'),
        ("[]", "Content-Type: application/json"),
        ('{"wrt": []}', "expression: Field required"),
        ('{"expression": "w\'*w", "wrt": "w"}', 'wrt: this is a list, such as ["w"], not "w"'),
        ('{"expression": "x", "outputs": {}}', "outputs: this is a list, such as [], not {}"),
        ('{"expression": "x", "output": ["text"]}',
         'output: "output" is unknown; did you mean "outputs"?'),
        ('{"expression": "x", "foo": 1}', 'foo: "foo" is none of expression, language, '),
        ('{"exprssion": "x"}', 'did you mean "expression"?'),
        ('{"expression": "x", "outputs": ["text", "latx"]}',
         'outputs.1: "latx" is unknown; did you mean "latex"?'),
        ('{"expression": "x", "outputs": ["?"]}', 'outputs.0: "?" is none of text, latex, '),
        ('{"expression": "x", "mode": 3}', "mode: 3 is none of auto, forward, reverse, "),
        ('{"expression": "x", "wrt": ["1x"]}', 'wrt.0: "1x" is no name'),
        ('{"expression": "S", "variables": {"S": {"properties": ["symetric"]}}}',
         'variables.S.properties.0: "symetric" is unknown; did you mean "symmetric"?'),
        ('{"expression": "x", "variables": {"x": {"shap": ["n"]}}}',
         'variables.x.shap: "shap" is unknown; did you mean "shape"?'),
        ('{"expression": "x", "variables": {"x": "m,n"}}',
         'variables.x: a variable is its shape, as ["m", "n"], or {"shape": ["m", "n"]'),
        ('{"expression": "x", "variables": {"x": [-1]}}', "variables.x.shape.0"),
    ],
)  # fmt: skip
def test_a_query_of_another_form_is_told_its_form(
    client: TestClient, body: str, message: str
) -> None:
    answer = client.post(DERIVE, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]["kind"] == "InvalidQuery"
    assert message in answer.json()["error"]["message"]


def test_a_body_that_is_no_json_has_a_place(client: TestClient) -> None:
    body = '{"expression": "x",\n "wrt": x}'
    answer = client.post(DERIVE, content=body, headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert (error["line"], error["column"]) == (2, 9)


def test_the_form_tells_a_property_that_is_misspelt(client: TestClient) -> None:
    answer = client.get("/", params={"e": "S", "vn": "S", "vs": "n, n", "vp": "symetric"})
    assert answer.status_code == 422
    assert "did you mean &#34;symmetric&#34;?" in answer.text


def test_a_body_that_is_not_called_json_is_told_how_to_send_it(client: TestClient) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}  # as curl does
    answer = client.post(DERIVE, content='{"expression": "x"}', headers=form)
    assert answer.status_code == 422
    assert "Content-Type: application/json" in answer.json()["error"]["message"]


def test_a_variable_may_be_given_by_its_shape_alone(client: TestClient) -> None:
    query = {"expression": "X*w", "variables": {"X": ["m", 3], "w": {"shape": [3]}}, "wrt": ["w"]}
    answer = client.post(DERIVE, json=query).json()
    assert answer["variables"]["X"] == {"shape": ["m", 3], "properties": []}


@pytest.mark.parametrize(
    ("headers", "root", "address"),
    [
        ({}, "", "http://testserver/api/v1/derive"),
        ({"host": "127.0.0.1:8111"}, "", "http://127.0.0.1:8111/api/v1/derive"),
        ({"host": "a.org"}, "/tensors", "http://a.org/tensors/api/v1/derive"),
        ({"host": "<script>alert(1)</script>"}, "", "/api/v1/derive"),
    ],
)
def test_the_interface_is_described_at_its_own_address(
    client: TestClient, headers: dict[str, str], root: str, address: str
) -> None:
    page = TestClient(client.app, root_path=root).get(f"{root}/interface", headers=headers)
    assert page.status_code == 200
    assert f"{address}</code>" in page.text
    assert "<script>" not in page.text


def test_text_that_is_no_json_is_refused(client: TestClient) -> None:
    answer = client.post(DERIVE, content=b"\xff{", headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)


def test_pages_load_nothing_from_elsewhere(client: TestClient) -> None:
    policy = client.get("/health").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("path", ["/", "/?e=x%27*x&d=x%3An&wrt=x", "/health", "/embed", "/nothing"])
def test_head_is_get_without_a_body(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert head.status_code == get.status_code
    assert head.headers["content-length"] == get.headers["content-length"]
    assert not head.content
    assert get.content


def test_when_the_fork_server_ends_another_one_answers_at_once(client: TestClient) -> None:
    query = {"expression": "sum(x.^2)", "wrt": ["x"]}
    evaluator = service(client).evaluator
    until(lambda: all(link.ready.is_set() for link in evaluator._links))
    killed = evaluator._links[0]
    os.kill(killed.pid, signal.SIGKILL)
    until(killed.gone.is_set)
    assert client.post(DERIVE, json=query).status_code == 200
    until(lambda: len([k for k in evaluator._links if k.ready.is_set()]) == 2)


def test_queries_of_one_address_are_counted() -> None:
    now = 0.0
    gate = Gate(replace(SETTINGS, burst=3, rate=0.5), lambda: now)
    assert [gate.wait("10.0.0.1") > 0 for _ in range(4)] == [False, False, False, True]
    assert gate.wait("10.0.0.2") == 0
    now = 2.0
    assert gate.wait("10.0.0.1") == 0
    gate.took("10.0.0.1", SETTINGS.seconds_at_once + 6)
    assert gate.wait("10.0.0.1") > 1


def test_addresses_are_forgotten_and_networks_are_one() -> None:
    gate = Gate(replace(SETTINGS, addresses=10))
    for k in range(100):
        gate.wait(f"10.0.0.{k}")
    assert len(gate._buckets) == 10
    assert network("2001:db8::1") == network("2001:db8::ffff")
    assert network("2001:db8::1") != network("2001:db8:0:1::1")
    assert network("::ffff:10.0.0.1") == "10.0.0.1"
    assert network("<script>") == "unknown"


@pytest.mark.parametrize(
    ("address", "status", "shown"),
    [
        ("/", 200, "Examples"),
        ("/?e=x'*A*x&d=x", 200, "(A + A&#39;)*x"),
        ("/?e=x'*A*%2B&d=x", 422, "<mark>"),
        ("/?e=<script>alert(1)</script>", 422, "&lt;script&gt;"),
        ("/?e=x&o=none", 422, "the order is a number"),
        ("/?e=x&s=n", 422, "sizes are written"),
        ("/?e=Long*vec&d=vec", 200, "m, n"),
        ("/?e=f%3Dsum[i](a[i]^2)&l=index&d=a", 200, "2*"),
        ("/embed?e=x'*A*x&d=x", 200, "A"),
        ("/interface", 200, "POST /api/v1/derive"),
    ],
)
def test_pages(client: TestClient, address: str, status: int, shown: str) -> None:
    page = client.get(address)
    assert page.status_code == status
    assert shown in page.text
    assert "<script>alert" not in page.text
    assert not re.search(r"<[^>]* (style|on\w+)=", page.text)


def test_a_form_keeps_what_was_typed_and_guesses_again_what_was_not(client: TestClient) -> None:
    first = client.get("/?e=x'*A*x&d=x").text
    assert 'name="vg" value="n, n"' in first
    # The guess is not a declaration: another expression is guessed anew.
    rows = "&vn=A&vs=n,+n&vp=&vg=n,+n"
    assert client.get(f"/?e=norm2(A*x-y)^2&d=x{rows}").status_code == 200
    edited = client.get("/?e=x'*A*x&d=x&vn=A&vs=n,+n&vp=symmetric&vg=n,+n")
    assert "2*A*x" in edited.text
    assert 'value="symmetric" selected' in edited.text


@pytest.mark.parametrize(
    ("expression", "shapes"),
    [
        ("norm2(A*x - b)^2 + lambda*norm1(x)", {"lambda": []}),
        ("sum(log(cosh(X*theta - y)))", {"theta": ["n"]}),
        ("(x - mu)'*inv(Sigma)*(x - mu) + logdet(Sigma)", {"mu": ["n"], "Sigma": ["n", "n"]}),
        ("scale*A*x", {"scale": []}),
        ("W*input + bias", {"input": ["n"], "bias": ["m"]}),
        ("α*norm2(Data*weights)", {"α": [], "Data": ["m", "n"], "weights": ["n"]}),
        ("Data*(", {"Data": ["m", "n"]}),
    ],
)  # fmt: skip
def test_names_have_the_shapes_of_letters_in_their_places(
    expression: str, shapes: dict[str, list[str]]
) -> None:
    found = guessed(expression, "matrix", {}, tc.parse)
    assert {name: one["shape"] for name, one in found.items()} == shapes


INDEXED = [
    ("y[i] = sum[j](A[i,j]*x[j])", {"A": ["n", "m"], "x": ["m"]}),
    ("f = sum[i,j](s*x[i]*x[j]*K[ i , j ])", {"s": [], "x": ["n"], "K": ["n", "n"]}),
    ("f = sum[i=0..n-1](sum[k=0..m-1](w[k]*x[i+k])^2)", {"w": ["m"], "x": ["x1"]}),
    ("y[i,j] = x[i]*x[j]; f = sum[i,j](y[i,j]*B[i,j])", {"x": ["n"], "B": ["n", "n"]}),
    ("f = sum[i](u[g[i]]*x[i])", {"u": ["u1"], "g": ["n"], "x": ["n"]}),
    ("f = sum[i](max[j](n*A[i,j]))", {"n": [], "A": ["m", "k"]}),
    ("f = sum[i](x[i", {"x": ["n"]}),
    ("f = sum[i,j](x[max(i,j)]*y[(i)]*A[i,x[j]])", {"x": ["n"], "y": ["y1"], "A": ["m", "A2"]}),
]


@pytest.mark.parametrize(("expression", "shapes"), INDEXED)
def test_axes_with_one_index_are_equally_long(expression: str, shapes: dict[str, Any]) -> None:
    found = guessed(expression, "index", {})
    assert {name: one["shape"] for name, one in found.items()} == shapes


def test_arrays_in_subscripts_are_integers() -> None:
    found = guessed("f = sum[i](u[g[i]+1]*x[(i)]*v[h[k[i]]])", "index", {})
    assert {name for name, one in found.items() if one["properties"]} == {"g", "h", "k"}


def test_declared_arrays_tell_extents() -> None:
    declared = {"A": {"shape": [3, "p"], "properties": []}}
    found = guessed("y[i] = sum[j](A[i,j]*x[j]*z[i])", "index", declared)
    assert {name: one["shape"] for name, one in found.items()} == {"x": ["p"], "z": [3]}


@pytest.mark.parametrize(
    "part", ["a[", "a[i,", "a(", "[", "a", "a[i]+", "a [", "sum[", "i=0..n-1 "]
)
def test_shapes_are_guessed_in_one_pass(part: str) -> None:
    """Outside of the processes that may be ended: as many times as long, not their square."""
    text = (part * 4096)[:4096]
    began = time.process_time()
    guessed(text, "index", {})
    assert time.process_time() - began < 1


def test_indexed_texts_need_no_declarations(client: TestClient) -> None:
    for text, wanted in ((INDEXED[0][0], "A[i, j]"), (INDEXED[4][0], "g[")):
        query = {"expression": text, "language": "index", "wrt": ["x"], "guess": True}
        found = client.post(DERIVE, json={**query, "outputs": ["index"]})
        assert found.status_code == 200, found.text
        assert wanted in str(found.json()["outputs"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.title)
def test_examples_are_answered(client: TestClient, example: Example) -> None:
    page = client.get(f"/?{example.link}")
    assert page.status_code == 200, page.text
