"""The service as an ASGI application: routes, guards, and one shape for every error."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException

import cptuning
from cptuning.serving.catalog import Catalog
from cptuning.serving.guards import NAMED_MODEL, Door, Measured, Scales
from cptuning.serving.keys import Keys
from cptuning.serving.limits import Limits
from cptuning.serving.metrics import Metrics
from cptuning.serving.refusals import Refusal
from cptuning.serving.routes import (
    Served,
    model_routes,
    name_parameter,
    named_routes,
    server_routes,
)

_DOCS_FILES = "/docs-files"
_DESCRIPTION = """
Few-shot text classifiers over HTTP. `/predict`, `/embed` and `/examples` ask the server's only or
default model, `/models/{name}/...` any of them. Every error is `{"error": "one sentence"}`.
"""


def create_app(catalog: Catalog, limits: Limits, metrics: Metrics, keys: Keys) -> FastAPI:
    """The whole service around the models of a catalog."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(catalog.close)

    # The page's scripts come from here, not from a server in the internet.
    app = FastAPIOffline(
        title="cptuning",
        version=cptuning.__version__,
        description=_DESCRIPTION,
        redoc_url=None,
        redirect_slashes=False,
        static_url=_DOCS_FILES,
        lifespan=lifespan,
    )
    app.state.served = Served(catalog, limits, metrics)
    _add_routes(app, catalog, keys)
    # Counted first, then the door, then the scales: the one added last stands outermost.
    app.add_middleware(Scales, limits=limits)
    app.add_middleware(Door, keys=keys, open_prefixes=[_DOCS_FILES])
    app.add_middleware(Measured, metrics=metrics)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


def _add_routes(app: FastAPI, catalog: Catalog, keys: Keys) -> None:
    names = [name for name, _ in catalog]
    shown = catalog.default or names[0]
    pairs = catalog.find(shown)[1].model.predictor.is_pair
    locked = [Depends(HTTPBearer(auto_error=False))] if keys else []
    # The page is open to all: where there are keys, it does not tell the models' names.
    named = [*locked, name_parameter("name" if keys else shown)]
    app.include_router(server_routes(), tags=["server"], dependencies=locked)
    app.include_router(model_routes(pairs=pairs), tags=["default model"], dependencies=locked)
    for routes in (named_routes(), model_routes(pairs=pairs)):
        app.include_router(routes, prefix=NAMED_MODEL, tags=["models"], dependencies=named)


async def _refuse(_: Request, error: Any) -> Response:
    refusal: Refusal = error
    return refusal.response()


async def _refuse_path(_: Request, error: Any) -> Response:
    sentences = {
        400: "The body can't be read: send JSON in UTF-8.",
        404: "There is nothing here: see /docs.",
        405: "This can't be asked with this method: see /docs.",
    }
    sentence = sentences.get(error.status_code, f"{error.detail}.")
    return Refusal(error.status_code, sentence, error.headers).response()


async def _refuse_body(request: Request, error: Any) -> Response:
    return _body_refusal(request.headers.get("content-type", ""), error.errors()[0]).response()


def _body_refusal(content_type: str, problem: Any) -> Refusal:
    """What is wrong with a body, in one sentence.

    >>> problem = {"type": "missing", "loc": ("body", "texts"), "msg": "Field required"}
    >>> print(_body_refusal("application/json", problem))
    In the body, texts: field required.
    """
    if problem["type"] == "json_invalid":
        what, where = problem["ctx"]["error"], problem["loc"][1]
        return Refusal(400, f"The body is no JSON ({what}, at character {where}).")
    if "json" not in content_type.lower():
        return Refusal(415, "Send JSON, with the header Content-Type: application/json.")
    if problem["type"] == "value_error":
        return Refusal(422, str(problem["ctx"]["error"]))
    place = ".".join(map(str, problem["loc"][1:]))[:100]
    where = f"In the body, {place}" if place else "The body"
    message = problem["msg"]
    return Refusal(422, f"{where}: {message[0].lower()}{message[1:]}.")


async def _confess(_: Request, error: Any) -> Response:
    return Refusal(500, "Something went wrong here: see the server's log.").response()


_HANDLERS: dict[type[Exception], Any] = {
    Refusal: _refuse,
    HTTPException: _refuse_path,
    RequestValidationError: _refuse_body,
    Exception: _confess,
}
