"""The route /tag: a server's taggers, a thread for each, and the spans that they find."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from cptuning.data.sentences import Sentence
from cptuning.inference.tag_predictor import FoundSpan, SpanReason
from cptuning.serving.api_errors import ApiError, answered_within, overloaded
from cptuning.serving.limits import Limits
from cptuning.serving.model_registry import holds_tagger
from cptuning.serving.routes import error_responses
from cptuning.serving.schemas import TaggerInfo
from cptuning.storage import FACTS_FILE
from cptuning.storage.taggers import load_tagger

_ERRORS = error_responses(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503, 504)


class ServedTagger:
    """A loaded tagger with its thread; requests wait for each other, and few may wait."""

    def __init__(self, folder: Path, device: str, limits: Limits) -> None:
        self.folder = folder
        _, self.predictor = load_tagger(folder, device)
        self._limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tagger")
        self._waiting = 0
        self._seconds_per_text = 0.02

    async def spans(
        self, sentences: list[Sentence], k: int
    ) -> list[list[tuple[FoundSpan, list[SpanReason]]]]:
        """The spans of texts, each with the k nearest labelled ones."""
        if self._waiting and self._waiting + len(sentences) > self._limits.queue_rows:
            raise overloaded(self._waiting * self._seconds_per_text)
        self._waiting += len(sentences)
        began = time.monotonic()
        try:
            loop = asyncio.get_running_loop()
            async with answered_within(self._limits.seconds):
                found = await loop.run_in_executor(
                    self._thread, self.predictor.explain, sentences, k
                )
        finally:
            self._waiting -= len(sentences)
        self._seconds_per_text = (time.monotonic() - began) / max(1, len(sentences))
        return found

    def info(self, name: str) -> TaggerInfo:
        """What the list of models says of it."""
        predictor = self.predictor
        return TaggerInfo(name=name, types=list(predictor.types), sentences=len(predictor.examples))

    def close(self) -> None:
        """Finish what was begun."""
        self._thread.shutdown(wait=True, cancel_futures=True)


def load_taggers(place: Path, device: str, limits: Limits) -> dict[str, ServedTagger]:
    """The taggers in a folder, by name; or the one that the folder holds itself."""
    if not place.is_dir():
        return {}
    inside = [place] if (place / FACTS_FILE).is_file() else sorted(place.iterdir())
    return {
        folder.resolve().name: ServedTagger(folder, device, limits)
        for folder in inside
        if (folder / FACTS_FILE).is_file()
        and (folder == place or (not folder.name.startswith(".") and folder.name.isprintable()))
        and holds_tagger(folder)
    }


Text = Annotated[str, StringConstraints(strict=True)]
_TEXT = {"type": "string"}


class TagRequest(BaseModel):
    """Texts to find spans in."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"texts": ["a table in Rome"]}]}
    )

    texts: Annotated[
        Annotated[list[Text], Field(min_length=1)],
        BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
        WithJsonSchema(
            {
                "anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}],
                "description": "A text, or a list of texts.",
            }
        ),
    ]
    explain: Annotated[int, Field(strict=True, ge=0, le=100)] = 0


class SimilarSpan(BaseModel):
    """A labelled span, and how similar a found one is to it."""

    text: str
    label: str
    similarity: float
    sentence: str


class TaggedSpan(BaseModel):
    """A span that was found; ``start`` and ``end`` count characters."""

    text: str
    label: str
    start: int
    end: int
    score: float = Field(description="The mean probability of its words' tags.")
    neighbours: list[SimilarSpan] | None = Field(
        None, description="The nearest labelled spans: the explanation."
    )


class TagResponse(BaseModel):
    """The spans of each text, in the order of the texts."""

    model: str
    spans: list[list[TaggedSpan]]


def tagging_routes() -> APIRouter:
    """The route that finds spans, of the one tagger or of a named one."""
    router = APIRouter()

    @router.post("/tag", responses=_ERRORS, summary="Find spans")
    async def tag(request: Request, body: TagRequest) -> TagResponse:
        """The spans of each text, of a model that is a tagger.

        With `explain`, also the nearest labelled spans of the same type.
        """
        state = request.app.state.service
        name, tagger = _tagger(state.taggers, request.path_params.get("name"))
        _check(body.texts, state.limits)
        sentences = [Sentence.of_text(text) for text in body.texts]
        found = await tagger.spans(sentences, body.explain)
        return TagResponse(
            model=name,
            spans=[
                [_span(sentence, one, reasons, body.explain) for one, reasons in spans]
                for sentence, spans in zip(sentences, found, strict=True)
            ],
        )

    return router


def _tagger(taggers: dict[str, ServedTagger], name: str | None) -> tuple[str, ServedTagger]:
    if name is None:
        if len(taggers) > 1:
            raise ApiError(404, "This server has several taggers: use /models/{name}/tag.")
        name = next(iter(taggers), "")
    if name not in taggers:
        raise ApiError(404, "There is no tagger here, or none with this name.")
    return name, taggers[name]


def _check(texts: list[str], limits: Limits) -> None:
    if len(texts) > limits.texts:
        raise ApiError(422, f"There are {len(texts)} texts: send at most {limits.texts} at once.")
    for row, text in enumerate(texts, start=1):
        if len(text) > limits.characters:
            raise ApiError(
                422,
                f"The text in row {row} has {len(text)} characters: send at most "
                f"{limits.characters}.",
            )
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ApiError(422, f"The text in row {row} is not valid Unicode.")


def _span(
    sentence: Sentence, one: FoundSpan, reasons: list[SpanReason], explain: int
) -> TaggedSpan:
    similar = [SimilarSpan(**asdict(reason)) for reason in reasons] if explain else None
    facts: dict[str, Any] = sentence.marked(one.span)
    return TaggedSpan(**facts, score=one.score, neighbours=similar)
