"""What can be asked: of one model (predict, embed, examples), and of the server."""

import asyncio
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import APIRouter, Body, Depends, Path, Request, Response

from cptuning.data import Examples, as_examples
from cptuning.errors import CPTuningError
from cptuning.inference import Predictor
from cptuning.serving.api_errors import ApiError
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
    ModelInfo,
    ModelList,
    Neighbour,
    Prediction,
    PredictRequest,
    PredictResponse,
)

T = TypeVar("T")

_ERRORS = {
    400: "The body is no JSON.",
    401: "There is no API key, or a wrong one.",
    403: "The server was asked for by a name that is not this machine's.",
    404: "There is no such model.",
    408: "The request took too long to arrive.",
    409: "This model can't do that.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    422: "The body is not what is asked for.",
    429: "There is too much to do: see Retry-After.",
    503: "The server is shutting down, or can't write.",
    504: "The answer took too long.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for the OpenAPI document.

    >>> error_responses(404)[404]["description"]
    'There is no such model.'
    """
    return {status: {"model": ErrorBody, "description": _ERRORS[status]} for status in statuses}


_AUTH_ERRORS = error_responses(401, 403)
_BODY_ERRORS = error_responses(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503, 504)


@dataclass(frozen=True)
class ServiceState:
    """What the routes work with."""

    registry: ModelRegistry
    limits: Limits
    metrics: Metrics


def _served(request: Request) -> ServiceState:
    served: ServiceState = request.app.state.served
    return served


@dataclass(frozen=True)
class RequestedModel:
    """The model that a request is for."""

    name: str
    registry: ModelRegistry
    limits: Limits

    @property
    def worker(self) -> BatchWorker:
        """The one in charge now; after an ``await`` it may be another one."""
        return self.registry.find(self.name)[1]

    def examples(self, given: Examples) -> Examples:
        """The texts, if they are of the model's kind, and neither too many nor too long."""
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
        """What the worker makes of it, if it comes in time."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise ApiError(
                504, f"The answer took longer than {self.limits.seconds:g} s: try again later."
            ) from None
        except CPTuningError as error:
            raise ApiError(409, str(error)) from error


async def _chosen(request: Request) -> RequestedModel:
    served = _served(request)
    name, _ = served.registry.find(request.path_params.get("name"))
    return RequestedModel(name, served.registry, served.limits)


ModelDep = Annotated[RequestedModel, Depends(_chosen)]


def model_routes(*, pairs: bool) -> APIRouter:
    """What a model is asked, with examples of the kind of texts that it takes."""
    router = APIRouter()

    @router.post("/predict", responses=_BODY_ERRORS, summary="Label texts")
    async def predict(
        model: ModelDep,
        request: Annotated[
            PredictRequest, Body(openapi_examples=request_examples("predict", pairs=pairs))
        ],
    ) -> PredictResponse:
        """The label of each text, with the probability of each class.

        `explain` asks for the reasons as well: the nearest labelled examples of the answered class.
        """
        examples = model.examples(request.texts)
        if request.explain:
            model.worker.model.require_examples()
        answer = await model.result(model.worker.read(examples, request.explain))
        return PredictResponse(model=model.name, predictions=_predictions(answer))

    @router.post("/embed", responses=_BODY_ERRORS, summary="Embed texts")
    async def embed(
        model: ModelDep,
        request: Annotated[
            EmbedRequest, Body(openapi_examples=request_examples("embed", pairs=pairs))
        ],
    ) -> EmbedResponse:
        """The unit vector of each text: similar texts have a large product."""
        examples = model.examples(request.texts)
        model.worker.model.require_examples()
        answer = await model.result(model.worker.read(examples))
        embeddings = answer.answered.embeddings
        assert embeddings is not None  # require_examples saw to it
        return EmbedResponse(model=model.name, embeddings=embeddings.tolist())

    @router.post("/examples", responses=_BODY_ERRORS, summary="Add labelled examples")
    async def add_examples(
        model: ModelDep,
        request: Annotated[
            ExamplesRequest, Body(openapi_examples=request_examples("examples", pairs=pairs))
        ],
    ) -> ExamplesResponse:
        """Teach the model more examples, of old classes or of new ones, without training.

        They are on the disk when the answer comes. Those that are known already are left out, so
        a request may be repeated.
        """
        examples = model.examples(request.texts)
        model.worker.model.require_examples()
        if len(request.labels) != len(examples):
            raise ApiError(
                422,
                f"There are {len(examples)} texts but {len(request.labels)} labels: "
                "give one label for each.",
            )
        added = await model.result(model.worker.learn(examples, request.labels))
        return ExamplesResponse(model=model.name, **asdict(added))

    return router


def _predictions(answer: ModelOutput) -> list[Prediction]:
    answered = answer.answered
    found = zip(answered.labels.tolist(), answered.probabilities, strict=True)
    predictions = [_prediction(answer.predictor, *each) for each in found]
    if answer.reasons is not None:
        for prediction, reasons in zip(predictions, answer.reasons, strict=True):
            prediction.neighbours = [Neighbour(**asdict(example)) for example in reasons]
            if reasons.against is not None:
                prediction.against = Neighbour(**asdict(reasons.against))
    return predictions


def _prediction(predictor: Predictor, label: Any, probabilities: np.ndarray) -> Prediction:
    names = map(str, predictor.label_space.classes)
    return Prediction(
        label=label,
        confidence=predictor.confidence(label, probabilities),
        probabilities=dict(zip(names, probabilities.tolist(), strict=True)),
    )


def server_routes() -> APIRouter:
    """What the server is asked."""
    router = APIRouter()

    @router.get("/health", responses=error_responses(403), summary="Is the process there?")
    async def health() -> HealthStatus:
        """Always yes, if it answers."""
        return HealthStatus(status="ok")

    @router.get("/ready", responses=error_responses(403, 503), summary="Can it answer?")
    async def ready(request: Request) -> HealthStatus:
        """Whether every model has its worker."""
        if not all(worker.is_alive for _, worker in _served(request).registry):
            raise ApiError(503, "A model can't answer: see the server's log.")
        return HealthStatus(status="ready")

    @router.get(
        "/metrics",
        responses={**_AUTH_ERRORS, 200: {"content": {"text/plain": {}}}},
        response_class=Response,
        summary="Figures for Prometheus",
    )
    async def metrics(request: Request) -> Response:
        """Requests, times, batches, queues, memory."""
        return Response(_served(request).metrics.text(), media_type=CONTENT_TYPE)

    @router.get("/models", responses=_AUTH_ERRORS, summary="The models")
    async def models(request: Request) -> ModelList:
        """The models of this server, and the one that is asked where none is named."""
        registry = _served(request).registry
        return ModelList(
            default=registry.default, models=[_facts(name, worker) for name, worker in registry]
        )

    return router


def named_routes() -> APIRouter:
    """What is asked about a model under its name."""
    router = APIRouter()

    @router.get("", responses=error_responses(401, 403, 404), summary="One model")
    async def model(chosen: ModelDep) -> ModelInfo:
        """What a model is."""
        return _facts(chosen.name, chosen.worker)

    @router.post(
        "/reload",
        responses=error_responses(401, 403, 404, 409),
        summary="Read a model's folder again",
    )
    async def reload(request: Request, name: Annotated[str, Path()]) -> ModelInfo:
        """Put the model that is in the folder now in the place of the one that was.

        No request is dropped. A folder that is new among the models is taken in.
        """
        try:
            return _facts(name, await _served(request).registry.reload(name))
        except CPTuningError as error:
            raise ApiError(409, f"The model stays as it was: {error}") from error

    return router


def name_parameter(example: str) -> Any:
    """The dependency that puts the name in the path into the OpenAPI document."""

    async def named(
        name: Annotated[str, Path(examples=[example], description="A model's name.")],
    ) -> None:
        """It is looked up by the route."""

    return Depends(named)


def _facts(name: str, worker: BatchWorker) -> ModelInfo:
    predictor = worker.model.predictor
    return ModelInfo(
        name=name,
        method=worker.model.method,
        classes=predictor.label_space.to_json(),
        pairs=predictor.is_pair,
        examples=worker.model.n_examples,
    )
