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
from cptuning.serving.api_errors import ApiError
from cptuning.serving.api_keys import ApiKeys
from cptuning.serving.limits import Limits
from cptuning.serving.middleware import (
    NAMED_MODEL,
    AuthMiddleware,
    BodyLimitMiddleware,
    MetricsMiddleware,
)
from cptuning.serving.model_registry import ModelRegistry
from cptuning.serving.prometheus import Metrics
from cptuning.serving.routes import (
    ServiceState,
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


def create_app(registry: ModelRegistry, limits: Limits, metrics: Metrics, keys: ApiKeys) -> FastAPI:
    """The whole service around the models of a registry."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(registry.close)

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
    app.state.served = ServiceState(registry, limits, metrics)
    _add_routes(app, registry, keys)
    # Counted first, then the door, then the scales: the one added last stands outermost.
    app.add_middleware(BodyLimitMiddleware, limits=limits)
    app.add_middleware(AuthMiddleware, keys=keys, open_prefixes=[_DOCS_FILES])
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


def _add_routes(app: FastAPI, registry: ModelRegistry, keys: ApiKeys) -> None:
    names = [name for name, _ in registry]
    shown = registry.default or names[0]
    pairs = registry.find(shown)[1].model.predictor.is_pair
    locked = [Depends(HTTPBearer(auto_error=False))] if keys else []
    # The page is open to all: where there are keys, it does not tell the models' names.
    named = [*locked, name_parameter("name" if keys else shown)]
    app.include_router(server_routes(), tags=["server"], dependencies=locked)
    app.include_router(model_routes(pairs=pairs), tags=["default model"], dependencies=locked)
    for routes in (named_routes(), model_routes(pairs=pairs)):
        app.include_router(routes, prefix=NAMED_MODEL, tags=["models"], dependencies=named)


async def _refuse(_: Request, error: Any) -> Response:
    refusal: ApiError = error
    return refusal.response()


async def _refuse_path(_: Request, error: Any) -> Response:
    sentences = {
        400: "The body can't be read: send JSON in UTF-8.",
        404: "There is nothing here: see /docs.",
        405: "This can't be asked with this method: see /docs.",
    }
    sentence = sentences.get(error.status_code, f"{error.detail}.")
    return ApiError(error.status_code, sentence, error.headers).response()


async def _refuse_body(request: Request, error: Any) -> Response:
    return _body_refusal(request.headers.get("content-type", ""), error.errors()[0]).response()


def _body_refusal(content_type: str, problem: Any) -> ApiError:
    """What is wrong with a body, in one sentence.

    >>> problem = {"type": "missing", "loc": ("body", "texts"), "msg": "Field required"}
    >>> print(_body_refusal("application/json", problem))
    In the body, texts: field required.
    """
    if problem["type"] == "json_invalid":
        what, where = problem["ctx"]["error"], problem["loc"][1]
        return ApiError(400, f"The body is no JSON ({what}, at character {where}).")
    if "json" not in content_type.lower():
        return ApiError(415, "Send JSON, with the header Content-Type: application/json.")
    if problem["type"] == "value_error":
        return ApiError(422, str(problem["ctx"]["error"]))
    place = ".".join(map(str, problem["loc"][1:]))[:100]
    where = f"In the body, {place}" if place else "The body"
    message = problem["msg"]
    return ApiError(422, f"{where}: {message[0].lower()}{message[1:]}.")


async def _internal_error(_: Request, error: Any) -> Response:
    return ApiError(500, "Something went wrong here: see the server's log.").response()


_HANDLERS: dict[type[Exception], Any] = {
    ApiError: _refuse,
    HTTPException: _refuse_path,
    RequestValidationError: _refuse_body,
    Exception: _internal_error,
}
