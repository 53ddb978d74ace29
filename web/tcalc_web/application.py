"""The web process: pages, the JSON interface, and who may ask."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from .evaluator import Busy, Evaluator, Gone
from .gate import Gate
from .guard import Guard, failure, headers_of
from .guess import guessed
from .metrics import Metrics
from .pages import FOLDER, Form, embedded, interface, page
from .problems import told
from .queries import OUTPUTS
from .schema import Answer, Failure, Query
from .settings import SETTINGS, Settings

LOG = logging.getLogger("tcalc_web")
T = TypeVar("T")

#: The output that a formula is shown as.
FORMULA = "mathml" if "mathml" in OUTPUTS else "text"

#: What counts say where nobody was there to read an answer: nginx's number.
LEFT = 499
KILLED = (
    "this took more time or memory than a query may take; a lower order, fewer outputs or a shorter"
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


class Service:
    """Queries of everybody: who may ask, whose turn it is, what is counted and logged."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.evaluator = Evaluator(settings)
        self.gate = Gate(settings)
        self.metrics = Metrics()

    async def ask(self, query: dict[str, Any], request: Request) -> tuple[int, dict[str, Any]]:
        """The status and the body of the answer.

        Raises
        ------
        Refused
            Too many queries, no room, too long, or nobody is there any more who asked.
        """
        start = time.monotonic()
        status = 500
        try:
            status, body = await self._asked(query, request)
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

    async def _asked(self, query: dict[str, Any], request: Request) -> tuple[int, dict[str, Any]]:
        address = address_of(request)
        after = self.gate.wait(address)
        if after:
            message = f"too many queries from your address; the next one in {after:.0f} seconds"
            raise Refused(429, "TooManyQueries", message, after)
        try:
            charge = partial(self.gate.took, address)
            written = await while_there(request, self.evaluator.answer(query, charge))
        except Busy:
            raise Refused(503, "Busy", "too many queries wait; try again soon", 2) from None
        except Gone:
            message = "the process that answers was restarted; try again"
            raise Refused(503, "Restarted", message, 1) from None
        if written is None:
            raise Refused(504, "TimeLimit", KILLED)
        reply = json.loads(written)
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

    app.add_middleware(Guard, longest=settings.body)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        return failure(error.status, error.kind, error.message, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        message, place = told(list(error.errors()), error.body)
        return failure(422, "InvalidQuery", message, place=place)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        return failure(error.status_code, "HTTP", str(error.detail), error.headers)

    @app.exception_handler(Exception)
    async def mistake(request: Request, _: Exception) -> Response:
        headers = headers_of(request.url.path)
        return failure(500, "Mistake", "this is a mistake of the server's", headers)

    codes = (400, 413, 422, 429, 503, 504)

    @app.post(
        "/api/v1/derive",
        response_model=Answer,
        responses={code: {"model": Failure} for code in codes},
        summary="A derivative: as formulas, as code, its costs and a check",
    )
    async def derive(query: Query, request: Request) -> Response:
        status, body = await service.ask(query.model_dump(), request)
        return JSONResponse(body, status)

    @app.get("/health", summary="Whether it is there")
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
            status, body = await service.ask(query.model_dump(), request)
        except ValueError as error:
            return form, 422, {"error": {"kind": "Form", "message": str(error)}}
        except Refused as refused:
            body = {"error": {"kind": refused.kind, "message": refused.message}}
            return form, refused.status, body
        if "error" in body:
            form.rows = form.with_variables(guessed(form.expression, form.language, {}))
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
    async def described(request: Request) -> Response:
        return HTMLResponse(interface(app.openapi(), str(request.base_url)))

    app.mount("/static", StaticFiles(directory=FOLDER / "static"))
    return app


def address_of(request: Request) -> str:
    """The address that a query came from; behind a proxy what uvicorn was told to trust."""
    return request.client.host if request.client else ""


async def while_there(request: Request, answer: Coroutine[Any, Any, T]) -> T:
    """An answer, for which nothing is done any more when whoever asked has left.

    Raises
    ------
    Refused
        Nobody is there.
    """

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(left())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        raise Refused(LEFT, "Left", "whoever asked has left")
    finally:
        leaving.cancel()
        answering.cancel()
        await asyncio.wait((answering,))
