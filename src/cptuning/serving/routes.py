"""The routes: of a model (predict, embed, examples) and of the server."""

import asyncio
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from fastapi import APIRouter, Body, Depends, Path, Request, Response

from cptuning.data import Examples, as_cell, as_examples
from cptuning.errors import CPTuningError
from cptuning.inference import Evidence, MultiLabelPredictor, Predictor, Reasons
from cptuning.serving.api_errors import ApiError, answered_within
from cptuning.serving.batch_worker import BatchWorker, ModelOutput
from cptuning.serving.limits import Limits
from cptuning.serving.model_registry import ModelRegistry
from cptuning.serving.prometheus import CONTENT_TYPE, Metrics
from cptuning.serving.request_examples import request_examples
from cptuning.serving.schemas import (
    EmbedRequest,
    EmbedResponse,
    ErrorBody,
    ExamplesRequest,
    ExamplesResponse,
    HealthStatus,
    LabelReasons,
    ModelInfo,
    ModelList,
    Neighbour,
    Prediction,
    PredictRequest,
    PredictResponse,
)

if TYPE_CHECKING:
    from cptuning.serving.tagging_routes import ServedTagger

T = TypeVar("T")

_ERRORS = {
    400: "The body is not valid JSON.",
    401: "The API key is missing or wrong.",
    403: "The Host header is not local, and the server has no API keys.",
    404: "There is no such model.",
    408: "The request took too long to arrive.",
    409: "This model does not support that.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    422: "The body does not have the expected form.",
    429: "The server is overloaded: see Retry-After.",
    503: "The server is shutting down, or can't write to disk.",
    504: "The answer took too long.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, for the OpenAPI document.

    >>> error_responses(404)[404]["description"]
    'There is no such model.'
    """
    return {status: {"model": ErrorBody, "description": _ERRORS[status]} for status in statuses}


_AUTH_ERRORS = error_responses(401, 403)
_BODY_ERRORS = error_responses(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503, 504)


@dataclass(frozen=True)
class ServiceState:
    """What the routes share: the models, the limits and the metrics."""

    registry: ModelRegistry
    limits: Limits
    metrics: Metrics
    taggers: "dict[str, ServedTagger]" = field(default_factory=dict)


def _state(request: Request) -> ServiceState:
    state: ServiceState = request.app.state.service
    return state


@dataclass(frozen=True)
class RequestedModel:
    """The model that a request is for."""

    name: str
    registry: ModelRegistry
    limits: Limits

    @property
    def worker(self) -> BatchWorker:
        """The model's current worker; after an ``await`` it may be another one."""
        return self.registry.find(self.name)[1]

    def examples(self, given: Examples) -> Examples:
        """The texts, if they are of the kind that the model takes and within the limits."""
        if len(given) > self.limits.texts:
            raise ApiError(
                422, f"There are {len(given)} texts: send at most {self.limits.texts} at once."
            )
        for texts in (given.first, given.second or ()):
            for row, text in enumerate(texts, start=1):
                if len(text) > self.limits.characters:
                    raise ApiError(
                        422,
                        f"The text in row {row} has {len(text)} characters: "
                        f"send at most {self.limits.characters}.",
                    )
        try:
            return as_examples(given, pair=self.worker.model.predictor.is_pair)
        except CPTuningError as error:
            raise ApiError(409, str(error)) from error

    async def result(self, future: Future[T]) -> T:
        """The result of a job of the worker, if it is ready in time."""
        async with answered_within(self.limits.seconds):
            return await asyncio.wrap_future(future)


async def _requested_model(request: Request) -> RequestedModel:
    state = _state(request)
    name, _ = state.registry.find(request.path_params.get("name"))
    return RequestedModel(name, state.registry, state.limits)


ModelDep = Annotated[RequestedModel, Depends(_requested_model)]


def model_routes(*, pairs: bool, label_sets: bool = False) -> APIRouter:
    """The routes of a model, with example requests of the kind that it takes."""
    router = APIRouter()

    @router.post("/predict", responses=_BODY_ERRORS, summary="Classify texts")
    async def predict(
        model: ModelDep,
        request: Annotated[
            PredictRequest, Body(openapi_examples=request_examples("predict", pairs=pairs))
        ],
    ) -> PredictResponse:
        """The label of each text, with the probability of each class.

        With `explain`, also the nearest labelled examples of the predicted class; with `coverage`,
        a set of labels that has the right one with this probability. Where texts may have several
        labels, the label is a list, and there are examples for each of them.
        """
        examples = model.examples(request.texts)
        if request.explain:
            model.worker.model.require_examples()
        answer = await model.result(model.worker.predict(examples, request.explain))
        predictions = _predictions(answer)
        if request.coverage is not None:
            _add_label_sets(predictions, answer, request.coverage)
        return PredictResponse(model=model.name, predictions=predictions)

    @router.post("/embed", responses=_BODY_ERRORS, summary="Embed texts")
    async def embed(
        model: ModelDep,
        request: Annotated[
            EmbedRequest, Body(openapi_examples=request_examples("embed", pairs=pairs))
        ],
    ) -> EmbedResponse:
        """The unit vector of each text; the dot product of two of them is their similarity."""
        examples = model.examples(request.texts)
        model.worker.model.require_examples()
        answer = await model.result(model.worker.predict(examples))
        embeddings = answer.answered.embeddings
        assert embeddings is not None  # Checked by require_examples.
        return EmbedResponse(model=model.name, embeddings=embeddings.tolist())

    @router.post("/examples", responses=_BODY_ERRORS, summary="Add labelled examples")
    async def add_examples(
        model: ModelDep,
        request: Annotated[
            ExamplesRequest,
            Body(openapi_examples=request_examples("examples", pairs=pairs, label_sets=label_sets)),
        ],
    ) -> ExamplesResponse:
        """Add examples of existing or new classes to the model, without training.

        They are stored on disk before the response is sent. Examples that the model already has
        are skipped, so a request may be repeated.
        """
        examples = model.examples(request.texts)
        model.worker.model.require_examples()
        if len(request.labels) != len(examples):
            raise ApiError(
                422,
                f"There are {len(examples)} texts but {len(request.labels)} labels: "
                "give one label for each.",
            )
        added = await model.result(model.worker.add_examples(examples, request.labels))
        return ExamplesResponse(model=model.name, **asdict(added))

    return router


def _predictions(answer: ModelOutput) -> list[Prediction]:
    answered = answer.answered
    found = zip(answered.labels.tolist(), answered.probabilities, strict=True)
    predictions = [_prediction(answer.predictor, *each) for each in found]
    if answer.reasons is not None:
        for prediction, reasons in zip(predictions, answer.reasons, strict=True):
            if isinstance(reasons, Reasons):
                prediction.neighbours, prediction.against = _shown(reasons)
                prediction.passage = reasons.passage
                continue
            prediction.reasons = {}
            for label, because in reasons.items():
                neighbours, against = _shown(because)
                shown = LabelReasons(
                    neighbours=neighbours, against=against, passage=because.passage
                )
                prediction.reasons[str(label)] = shown
    return predictions


def _shown(reasons: Reasons) -> tuple[list[Neighbour], Neighbour | None]:
    """The neighbours, and the one against the label."""
    against = reasons.against
    return list(map(_neighbour, reasons)), None if against is None else _neighbour(against)


def _neighbour(example: Evidence) -> Neighbour:
    label = as_cell(example.label, None)
    return Neighbour(text=example.text, label=label, similarity=example.similarity)


def _add_label_sets(predictions: list[Prediction], answer: ModelOutput, coverage: float) -> None:
    try:
        sets = answer.predictor.sets_of(answer.answered.probabilities, coverage)
    except CPTuningError as error:
        raise ApiError(409, str(error)) from error
    for prediction, labels in zip(predictions, sets, strict=True):
        prediction.label_set = labels


def _prediction(predictor: Predictor, label: Any, probabilities: np.ndarray) -> Prediction:
    names = map(str, predictor.label_space.classes)
    return Prediction(
        label=as_cell(label, None),
        confidence=predictor.confidence(label, probabilities),
        probabilities=dict(zip(names, probabilities.tolist(), strict=True)),
    )


def server_routes() -> APIRouter:
    """The routes of the server as a whole."""
    router = APIRouter()

    @router.get("/health", responses=error_responses(403), summary="Liveness")
    async def health() -> HealthStatus:
        """Always ok while the process runs."""
        return HealthStatus(status="ok")

    @router.get("/ready", responses=error_responses(403, 503), summary="Readiness")
    async def ready(request: Request) -> HealthStatus:
        """Whether the worker of every model is running."""
        if not all(worker.is_alive for _, worker in _state(request).registry):
            raise ApiError(503, "The worker of a model has stopped: see the server's log.")
        return HealthStatus(status="ready")

    @router.get(
        "/metrics",
        responses={**_AUTH_ERRORS, 200: {"content": {"text/plain": {}}}},
        response_class=Response,
        summary="Metrics for Prometheus",
    )
    async def metrics(request: Request) -> Response:
        """Requests, durations, batches, queues, memory."""
        return Response(_state(request).metrics.text(), media_type=CONTENT_TYPE)

    @router.get("/models", responses=_AUTH_ERRORS, summary="List the models")
    async def models(request: Request) -> ModelList:
        """The models of this server, which of them is the default, and the taggers."""
        state = _state(request)
        return ModelList(
            default=state.registry.default,
            models=[_model_info(name, worker) for name, worker in state.registry],
            taggers=[served.info(name) for name, served in state.taggers.items()],
        )

    return router


def named_routes() -> APIRouter:
    """The routes that describe and reload a named model."""
    router = APIRouter()

    @router.get("", responses=error_responses(401, 403, 404), summary="Describe a model")
    async def model(model: ModelDep) -> ModelInfo:
        """The method, classes and number of examples of a model."""
        return _model_info(model.name, model.worker)

    @router.post(
        "/reload",
        responses=error_responses(401, 403, 404, 409),
        summary="Reload a model",
    )
    async def reload(request: Request, name: Annotated[str, Path()]) -> ModelInfo:
        """Replace the model by the one that is in its folder now.

        No request is dropped. A folder that is new since the server started is added.
        """
        try:
            return _model_info(name, await _state(request).registry.reload(name))
        except CPTuningError as error:
            raise ApiError(409, f"The model was not reloaded: {error}") from error

    return router


def name_parameter(example: str) -> Any:
    """A dependency that adds the path parameter ``name`` to the OpenAPI document."""

    async def named(
        name: Annotated[str, Path(examples=[example], description="The name of a model.")],
    ) -> None:
        """Nothing to do: the route looks the model up."""

    return Depends(named)


def _model_info(name: str, worker: BatchWorker) -> ModelInfo:
    predictor = worker.model.predictor
    return ModelInfo(
        name=name,
        method=worker.model.method,
        classes=predictor.label_space.to_json(),
        pairs=predictor.is_pair,
        label_sets=isinstance(predictor, MultiLabelPredictor),
        examples=worker.model.n_examples,
    )
