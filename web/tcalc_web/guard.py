"""What every request and every answer passes: how long a body may be, and what headers say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi.responses import JSONResponse, Response
from starlette.datastructures import MutableHeaders

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


def headers_of(path: str) -> dict[str, str]:
    """The headers of every answer under a path."""
    frames = "*" if path in EMBEDDABLE else "'none'"
    return HEADERS | {"Content-Security-Policy": POLICY.format(frames)}


def failure(
    status: int,
    kind: str,
    message: str,
    headers: Mapping[str, str] | None = None,
    place: tuple[int | None, int | None] = (None, None),
) -> Response:
    """An answer that is no result, as `schema.Failure`; `place` is a line and a column."""
    error = {"kind": kind, "message": message, "line": place[0], "column": place[1]}
    return JSONResponse({"error": error}, status, headers)


class Guard:
    """Reads bodies up to a length, whether they say how long they are or not; adds the headers.

    HEAD, by which monitors ask whether a page is there, is answered as GET without the body.

    Parameters
    ----------
    app : callable
        Of ASGI.
    longest : int
        Bytes.
    """

    def __init__(self, app: Any, longest: int) -> None:
        self.app, self.longest = app, longest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, bare = headers_of(scope["path"]), scope["method"] == "HEAD"
        if bare:
            scope = {**scope, "method": "GET"}

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send({**message, "body": b""} if bare and "body" in message else message)

        said = dict(scope["headers"]).get(b"content-length", b"0")
        parts, length, more = [], 0, True
        too_long = not said.isdigit() or int(said) > self.longest
        while more and not too_long:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            more, too_long = message.get("more_body", False), length > self.longest
        if too_long:
            refusal = failure(413, "TooLarge", f"a query has at most {self.longest:,} bytes")
            await refusal(scope, receive, guarded)
            return
        held = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def replay() -> Any:
            return held.pop() if held else await receive()

        await self.app(scope, replay, guarded)
