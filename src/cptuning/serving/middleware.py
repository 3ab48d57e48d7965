"""What every request passes before its route: metrics, authentication, the limit on its body."""

import asyncio
import re
import time
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cptuning.serving.api_errors import ApiError
from cptuning.serving.api_keys import ApiKeys
from cptuning.serving.limits import Limits
from cptuning.serving.prometheus import Metrics

_OPEN_PATHS = ("/health", "/ready", "/docs", "/openapi.json")
NAMED_MODEL = "/models/{name}"
"""The path prefix of the routes of a named model."""
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class MetricsMiddleware:
    """Counts requests and measures their duration, by route and never by the path as requested."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            self._metrics.observe_request(_route(scope), status, time.monotonic() - started)


def _route(scope: Scope) -> str:
    """The path of the matched route, as in the OpenAPI document."""
    if "route" not in scope:
        return "other"
    prefix = NAMED_MODEL if "name" in scope["path_params"] else ""
    return prefix + str(getattr(scope["route"], "path", "other"))


class FramingMiddleware:
    """Rejects a request that says twice where it ends.

    A proxy in front that believes the other header would see another request in its body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or reject it before its body is read."""
        app = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if "content-length" in headers and "transfer-encoding" in headers:
                app = _AMBIGUOUS.response()
        await app(scope, receive, send)


_AMBIGUOUS = ApiError(
    400,
    "Send either Content-Length or Transfer-Encoding, not both.",
    {"Connection": "close"},
)


class AuthMiddleware:
    """Requires an API key; if none is configured, requires that the Host header is local.

    The latter protects against DNS rebinding: web pages whose own domain name points to this
    machine.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys, open_prefixes: Sequence[str]) -> None:
        self._app = app
        self._keys = keys
        self._open_prefixes = tuple(open_prefixes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or reject it before its body is read."""
        error = self._auth_error(scope) if scope["type"] == "http" else None
        app = self._app if error is None else error.response()
        await app(scope, receive, send)

    def _auth_error(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        if not self._keys:
            host = re.sub(r":\d*$", "", headers.get("host", "")).lower()
            if host not in _LOCAL_HOSTS:
                return ApiError(
                    403, "Without API keys, this server answers only on localhost and 127.0.0.1."
                )
            return None
        if scope["path"] in _OPEN_PATHS or scope["path"].startswith(self._open_prefixes):
            return None
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._keys.accepts(key.strip()):
            return None
        return ApiError(
            401,
            "Send one of the server's API keys in the header Authorization: Bearer KEY.",
            {"WWW-Authenticate": "Bearer"},
        )


class BodyLimitMiddleware:
    """Reads the whole body, and rejects one that is too large or takes too long to arrive."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request with its whole body, or reject it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(Headers(scope=scope), receive)
        except ApiError as error:
            await error.response()(scope, receive, send)
            return
        if body is None:  # The client disconnected.
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, receive_whole, send)

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        most = self._limits.body_bytes
        too_large = ApiError(
            413, f"The body is larger than {most} bytes: send fewer texts at once."
        )
        if int(headers.get("content-length", 0)) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise ApiError(
                408,
                f"The body took longer than {self._limits.seconds:g} s to arrive.",
                {"Connection": "close"},
            ) from None
