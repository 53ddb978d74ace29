"""The web process: pages, the JSON interface, and who may ask."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from .evaluator import Busy, Evaluator, Gone
from .gate import Gate
from .guess import guessed
from .metrics import Metrics
from .pages import FOLDER, Form, embedded, interface, page
from .queries import OUTPUTS
from .schema import Answer, Failure, Query
from .settings import SETTINGS, Settings

LOG = logging.getLogger("tcalc_web")

#: Nothing from elsewhere, no script or style inside a page, no frame but where a page is meant for
#: one.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {}"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
#: Paths that other pages may show in a frame.
EMBEDDABLE = ("/embed",)

#: The output that a formula is shown as.
FORMULA = "mathml" if "mathml" in OUTPUTS else "text"

KILLED = (
    "this took more time than a query may take; a lower order, fewer outputs or a shorter"
    " expression needs less"
)


class Refused(Exception):
    """An answer that is no result.

    Parameters
    ----------
    status : int
        Of HTTP.
    kind, message : str
    after : float
        Seconds after which to try again; 0 says nothing.
    """

    def __init__(self, status: int, kind: str, message: str, after: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.after = status, kind, message, after

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(int(self.after) + 1)} if self.after else {}


def failure(status: int, kind: str, message: str, headers: Any = None, **more: Any) -> Response:
    body = {"error": {"kind": kind, "message": message, **more}}
    return JSONResponse(body, status, headers)


class Service:
    """Queries of everybody: who may ask, whose turn it is, what is counted and logged."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.evaluator = Evaluator(settings)
        self.gate = Gate(settings)
        self.metrics = Metrics()

    async def ask(self, query: dict[str, Any], address: str) -> tuple[int, dict[str, Any]]:
        """The status and the body of the answer.

        Raises
        ------
        Refused
            Too many queries, no room, or too long.
        """
        start = time.monotonic()
        status = 500
        try:
            status, body = await self._asked(query, address)
            return status, body
        except Refused as refused:
            status = refused.status
            raise
        finally:
            taken = time.monotonic() - start
            self.metrics.count(status, taken)
            text = query["expression"].encode(errors="replace")
            digest = hashlib.sha256(text).hexdigest()[:12]
            LOG.info("query %s of %d bytes: %d in %.3f s", digest, len(text), status, taken)

    async def _asked(self, query: dict[str, Any], address: str) -> tuple[int, dict[str, Any]]:
        after = self.gate.wait(address)
        if after:
            message = f"too many queries from your address; the next one in {after:.0f} seconds"
            raise Refused(429, "TooManyQueries", message, after)
        try:
            result = await self.evaluator.answer(query)
        except Busy:
            raise Refused(503, "Busy", "too many queries wait; try again soon", 2) from None
        except Gone:
            message = "the process that answers was restarted; try again"
            raise Refused(503, "Restarted", message, 1) from None
        self.gate.took(address, result.seconds)
        if result.reply is None:
            raise Refused(504, "TimeLimit", KILLED)
        reply = json.loads(result.reply)
        return reply["status"], reply["body"]


def application(settings: Settings = SETTINGS) -> FastAPI:
    """The application, with a fork server that starts and ends with it."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.evaluator.start()
        yield
        await service.evaluator.close()

    app = FastAPI(
        title="tcalc",
        summary="Derivatives of tensor expressions.",
        description=__doc__,
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service

    @app.middleware("http")
    async def guarded(
        request: Request, follow: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = await follow(request)
        response.headers.update(HEADERS)
        frames = "*" if request.url.path in EMBEDDABLE else "'none'"
        response.headers["Content-Security-Policy"] = POLICY.format(frames)
        return response

    app.add_middleware(BodyLimit, longest=settings.body)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        return failure(error.status, error.kind, error.message, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return failure(422, "InvalidQuery", f"{where}: {first['msg']}" if where else first["msg"])

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        return failure(error.status_code, "HTTP", str(error.detail), error.headers)

    codes = (400, 413, 422, 429, 503, 504)

    @app.post(
        "/api/v1/derive",
        response_model=Answer,
        responses={code: {"model": Failure} for code in codes},
        summary="A derivative: as formulas, as code, its costs and a check",
    )
    async def derive(query: Query, request: Request) -> Response:
        status, body = await service.ask(query.model_dump(), address_of(request))
        return JSONResponse(body, status)

    @app.get("/health", summary="Is it there?")
    async def health() -> Response:
        ready = service.evaluator.ready
        return JSONResponse({"status": "ok" if ready else "starting"}, 200 if ready else 503)

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        summary="Counts and times, as Prometheus reads them",
    )
    async def metrics() -> Response:
        return PlainTextResponse(service.metrics.text(service.evaluator))

    async def found(request: Request, outputs: Sequence[str]) -> tuple[Form, int, dict[str, Any]]:
        """The form of an address, the status, and what the page shows."""
        form = Form.read(request.query_params.multi_items())
        try:
            query = form.query(outputs)
            status, body = await service.ask(query.model_dump(), address_of(request))
        except ValueError as error:
            return form, 422, {"error": {"kind": "Form", "message": str(error)}}
        except Refused as refused:
            body = {"error": {"kind": refused.kind, "message": refused.message}}
            return form, refused.status, body
        if "error" in body:
            form.rows = form.with_variables(guessed(form.expression, form.language, ()))
            return form, status, body
        form.rows = form.with_variables(body["variables"])
        return form, status, {"answer": body}

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        if "e" not in request.query_params:
            return HTMLResponse(page(Form()))
        form, status, shown = await found(request, OUTPUTS)
        return HTMLResponse(page(form, **shown), status)

    @app.get("/embed", include_in_schema=False)
    async def embed(request: Request) -> Response:
        form, status, shown = await found(request, [FORMULA])
        return HTMLResponse(embedded(form, **shown), status)

    @app.get("/interface", include_in_schema=False)
    async def described() -> Response:
        return HTMLResponse(interface(app.openapi()))

    app.mount("/static", StaticFiles(directory=FOLDER / "static"))
    return app


def address_of(request: Request) -> str:
    """The address that a query came from; behind a proxy what uvicorn was told to trust."""
    return request.client.host if request.client else ""


class BodyLimit:
    """Refuses bodies that are too long, whether they say how long they are or not."""

    def __init__(self, app: Any, longest: int) -> None:
        self.app, self.longest = app, longest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        said = dict(scope["headers"]).get(b"content-length", b"0")
        parts, length, more = [], 0, True
        if not said.isdigit() or int(said) > self.longest:
            await self._refuse(scope, receive, send)
            return
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            more = message.get("more_body", False)
            if length > self.longest:
                await self._refuse(scope, receive, send)
                return
        held = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def replay() -> Any:
            return held.pop() if held else await receive()

        await self.app(scope, replay, send)

    async def _refuse(self, scope: Any, receive: Any, send: Any) -> None:
        message = f"a query has at most {self.longest:,} bytes"
        await failure(413, "TooLarge", message)(scope, receive, send)
