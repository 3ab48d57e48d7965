"""What a request passes before it is looked at: the count, the door, the scales."""

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
"""Where a model stands under its name."""
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class MetricsMiddleware:
    """Counts requests and their times, by the route, never by what a client made up."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            self._metrics.observe_request(_route(scope), status, time.monotonic() - started)


def _route(scope: Scope) -> str:
    """The path of the route that was found, as it is written in the OpenAPI document."""
    if "route" not in scope:
        return "other"
    prefix = NAMED_MODEL if "name" in scope["path_params"] else ""
    return prefix + str(getattr(scope["route"], "path", "other"))


class AuthMiddleware:
    """Lets in who has a key; where there are none, who asks for this machine by its own name.

    The latter keeps out web pages that let their own name point to this machine.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys, open_prefixes: Sequence[str]) -> None:
        self._app = app
        self._keys = keys
        self._open_prefixes = tuple(open_prefixes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it before its body is read."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        app = self._app if refusal is None else refusal.response()
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        if not self._keys:
            host = re.sub(r":\d*$", "", headers.get("host", "")).lower()
            if host not in _LOCAL_HOSTS:
                return ApiError(
                    403, "Without API keys this server answers only to localhost and 127.0.0.1."
                )
            return None
        if scope["path"] in _OPEN_PATHS or scope["path"].startswith(self._open_prefixes):
            return None
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._keys.admit(key.strip()):
            return None
        return ApiError(
            401,
            "Send one of the server's API keys in the header Authorization: Bearer KEY.",
            {"WWW-Authenticate": "Bearer"},
        )


class BodyLimitMiddleware:
    """Reads a body that is not too large and does not take too long, and passes it on whole."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(Headers(scope=scope), receive)
        except ApiError as refusal:
            await refusal.response()(scope, receive, send)
            return
        if body is None:  # The client went away.
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
