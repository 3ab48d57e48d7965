"""Which visitor may fetch which file: only the one whose session made it."""

import hashlib
import os
import secrets
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cptuning.app.temporary_files import gradio_folder

_COOKIE = "cptuning-visitor"
# Where Gradio serves files, with the file's path behind it.
_ROUTES = ("/file=", "/file/")


class FileAccessMiddleware:
    """Lets a browser fetch the files of its own visitor, and no other file.

    Gradio gives a file to whoever knows its address, which may be seen, in a log or over a
    shoulder. Here the files of a visitor are in a folder that is named by a hash of a cookie, and
    scripts can't read the cookie.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse a file; a new visitor gets a cookie."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visitor = visitor_of(Headers(scope=scope).get("cookie", ""))
        if not all(_belongs_to(visitor, path) for path in _paths(scope["path"])):
            refusal = PlainTextResponse("This is not a file of yours.", status_code=403)
            await refusal(scope, receive, send)
            return

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and not visitor:
                made = f"{_COOKIE}={secrets.token_urlsafe(32)}; Path=/; HttpOnly; SameSite=Lax"
                MutableHeaders(scope=message).append("Set-Cookie", made)
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def visitor_of(cookies: str) -> str:
    """The visitor in the Cookie header of a request; empty for a new one.

    >>> visitor_of("a=b; cptuning-visitor=secret"), visitor_of("a=b")
    ('secret', '')
    """
    try:
        found = SimpleCookie(cookies).get(_COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def folder_of(visitor: str) -> Path:
    """The folder of a visitor's files, which Gradio serves from where they are."""
    return gradio_folder() / hashlib.sha256(visitor.encode()).hexdigest()


def _paths(requested: str) -> list[str]:
    """The paths of files in the path of a request."""
    return [requested.partition(route)[2] for route in _ROUTES if route in requested]


def _belongs_to(visitor: str, path: str) -> bool:
    folder = str(folder_of(visitor))
    return bool(visitor) and os.path.normpath(path).startswith(folder + os.sep)
