"""The service as an ASGI application: routes, middleware, and one JSON shape for every error."""

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
from cptuning.inference import MultiLabelPredictor
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
from cptuning.serving.tagging_routes import ServedTagger, tagging_routes

_DOCS_FILES = "/docs-files"
_DESCRIPTION = """
Few-shot text classifiers over HTTP. `/predict`, `/embed` and `/examples` use the default model,
`/models/{name}/...` the model of that name. Taggers answer `/tag` and `/models/{name}/tag`. The
body of every error is `{"error": "one sentence"}`.
"""


def create_app(
    registry: ModelRegistry,
    limits: Limits,
    metrics: Metrics,
    keys: ApiKeys,
    taggers: dict[str, ServedTagger] | None = None,
) -> FastAPI:
    """The FastAPI application that serves the models of a registry, and taggers."""
    taggers = taggers or {}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(registry.close)
        for tagger in taggers.values():
            await asyncio.to_thread(tagger.close)

    # The scripts of /docs are served from here, not from a CDN.
    app = FastAPIOffline(
        title="cptuning",
        version=cptuning.__version__,
        description=_DESCRIPTION,
        redoc_url=None,
        redirect_slashes=False,
        static_url=_DOCS_FILES,
        lifespan=lifespan,
    )
    app.state.service = ServiceState(registry, limits, metrics, taggers)
    _add_routes(app, registry, keys, list(taggers))
    # The one added last runs first: every request is counted, then authenticated, then measured.
    app.add_middleware(BodyLimitMiddleware, limits=limits)
    app.add_middleware(AuthMiddleware, keys=keys, open_prefixes=[_DOCS_FILES])
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


def _add_routes(app: FastAPI, registry: ModelRegistry, keys: ApiKeys, taggers: list[str]) -> None:
    names = [name for name, _ in registry]
    shown = registry.default or [*names, *taggers][0]
    of_models = []
    if names:
        predictor = registry.find(registry.default or names[0])[1].model.predictor
        takes = {
            "pairs": predictor.is_pair,
            "label_sets": isinstance(predictor, MultiLabelPredictor),
        }
        of_models = [named_routes(), model_routes(**takes)]
    locked = [Depends(HTTPBearer(auto_error=False))] if keys else []
    # /docs is public: where there are API keys, it must not reveal the names of the models.
    named = [*locked, name_parameter("name" if keys else shown)]
    app.include_router(server_routes(), tags=["server"], dependencies=locked)
    if names:
        app.include_router(model_routes(**takes), tags=["default model"], dependencies=locked)
    if taggers:
        app.include_router(tagging_routes(), tags=["taggers"], dependencies=locked)
        of_models.append(tagging_routes())
    for routes in of_models:
        app.include_router(routes, prefix=NAMED_MODEL, tags=["models"], dependencies=named)


async def _api_error(_: Request, error: Any) -> Response:
    response: Response = error.response()
    return response


async def _http_error(_: Request, error: Any) -> Response:
    sentences = {
        400: "The body can't be read: send JSON in UTF-8.",
        404: "There is no such path: see /docs.",
        405: "This path does not support this method: see /docs.",
    }
    sentence = sentences.get(error.status_code, f"{error.detail}.")
    return ApiError(error.status_code, sentence, error.headers).response()


async def _validation_error(request: Request, error: Any) -> Response:
    return _body_error(request.headers.get("content-type", ""), error.errors()[0]).response()


def _body_error(content_type: str, problem: Any) -> ApiError:
    """What is wrong with a request body, in one sentence.

    >>> problem = {"type": "missing", "loc": ("body", "texts"), "msg": "Field required"}
    >>> print(_body_error("application/json", problem))
    In the body, texts: field required.
    """
    if problem["type"] == "json_invalid":
        what, where = problem["ctx"]["error"], problem["loc"][1]
        return ApiError(400, f"The body is not valid JSON ({what}, at character {where}).")
    if "json" not in content_type.lower():
        return ApiError(415, "Send JSON, with the header Content-Type: application/json.")
    if problem["type"] == "value_error":
        return ApiError(422, str(problem["ctx"]["error"]))
    place = ".".join(map(str, problem["loc"][1:]))[:100]
    where = f"In the body, {place}" if place else "The body"
    message = problem["msg"]
    return ApiError(422, f"{where}: {message[0].lower()}{message[1:]}.")


async def _internal_error(_: Request, error: Any) -> Response:
    return ApiError(500, "Internal server error: see the server's log.").response()


_HANDLERS: dict[type[Exception], Any] = {
    ApiError: _api_error,
    HTTPException: _http_error,
    RequestValidationError: _validation_error,
    Exception: _internal_error,
}
