"""Predictors to folders and back, without the estimators that train them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from cptuning.backbone.encoder_files import BACKBONE_FOLDER, EncoderFiles
from cptuning.backbone.joined_views import VIEWS_FILE, Views
from cptuning.backbone.packed import has_embedded_architecture
from cptuning.data import LEFT_OUT, Examples, LabelSpace, MultiLabelSpace, read_added
from cptuning.data.weights import Weights
from cptuning.errors import CPTuningError
from cptuning.extras import needed_for
from cptuning.files.tensors import save_tensors
from cptuning.inference import (
    ConformalSets,
    EmbeddingPredictor,
    Encoder,
    HeadPredictor,
    MultiLabelPredictor,
    Predictor,
    Scorer,
    SecondLook,
    SupportSet,
)
from cptuning.inference.closed_form import Flags
from cptuning.inference.embedded_encoder import EmbeddedEncoder
from cptuning.inference.onnx_encoder import EXACT_FILE, ONNX_FILE, OnnxEncoder
from cptuning.inference.predictor import HEAD_FILE
from cptuning.inference.ranked_documents import RankingPredictor, SentenceEncoder, load_judged
from cptuning.methods.cp_tuning_settings import CPTuningSettings
from cptuning.methods.ranking_settings import RankingSettings
from cptuning.prompting import Layout
from cptuning.storage.card import TEXTS_FILE, CardFacts, card
from cptuning.storage.folders import new_folder, read_facts
from cptuning.storage.model_hub import find_model
from cptuning.storage.schema import FACTS_FILE, FORMAT, LayoutFacts, ModelFacts
from cptuning.storage.tokenizer_check import check_tokenizer

if TYPE_CHECKING:
    from cptuning.backbone import TextEncoder

_SUPPORT = "support.safetensors"
_HELD_OUT = "held_out.safetensors"
_RIGHT = "probability_of_right_label"
_MOST_WEIGHT = 1e12
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class LoadedModel:
    """A model that answers, and what its folder says about it."""

    facts: ModelFacts
    predictor: Predictor


def save_model(facts: ModelFacts, predictor: Predictor, folder: Path) -> None:
    """Write a model that was trained here."""
    with new_folder(folder) as place:
        write_common(facts, predictor, place)
        predictor.save(place)


def save_shared(
    facts: ModelFacts, predictor: Predictor, folder: Path, card_facts: CardFacts
) -> None:
    """Write a model as it lies on the hub: no path of this machine is in it."""
    facts = facts.without_paths()
    with new_folder(folder) as place:
        write_common(facts, predictor, place, card_facts)
        predictor.save(place)
        # The hub counts downloads by this file.
        config = {"library_name": "cptuning", "format": FORMAT, "method": facts.method}
        (place / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def write_common(
    facts: ModelFacts, predictor: Predictor, place: Path, card_facts: CardFacts | None = None
) -> None:
    """Write what every kind of model folder holds: facts, tokenizer, support set, card."""
    stored = json.dumps(facts.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
    (place / FACTS_FILE).write_text(stored + "\n", "utf-8")
    predictor.encoder.layout.save_tokenizer(place / TOKENIZER)
    if predictor.conformal is not None:
        save_tensors(place / _HELD_OUT, {_RIGHT: predictor.conformal.probabilities})
    support = predictor.support
    if support is not None:
        tensors: dict[str, np.ndarray[Any, Any]]
        tensors = {"embeddings": support.embeddings, "labels": support.labels}
        if support.weights is not None:
            tensors["weights"] = support.weights
        if support.is_description is not None:
            tensors["is_description"] = support.is_description
        save_tensors(place / _SUPPORT, tensors)
        with (place / TEXTS_FILE).open("w", encoding="utf-8") as file:
            for text in support.examples:
                told = None if text in (LEFT_OUT, (LEFT_OUT, LEFT_OUT)) else text
                file.write(json.dumps(told, ensure_ascii=False) + "\n")
    if isinstance(predictor, RankingPredictor):
        predictor.save_judged(place)
    (place / "README.md").write_text(card(facts, support, card_facts or CardFacts()), "utf-8")


def load_predictor(folder: str | Path, device: str = "auto") -> Predictor:
    """The predictor of a model that was saved to, or exported to, a folder, or is on the hub.

    >>> load_predictor("no-such-folder")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no model folder 'no-such-folder': ...
    """
    return load_model(folder, device).predictor


def load_model(
    name: str | Path, device: str = "auto", *, trainable: bool = False, revision: str | None = None
) -> LoadedModel:
    """The predictor in a folder, or of an id on the hub, and what the folder says about it.

    A ``trainable`` one has a model of torch, if torch is installed.
    """
    folder = find_model(name, revision)
    facts = read_facts(folder)
    with unusable_named(folder):
        return LoadedModel(facts, _predictor(folder, facts, device, trainable))


@contextmanager
def unusable_named(folder: Path) -> Iterator[None]:
    """Inside, whatever a damaged or foreign model folder leads to becomes one sentence."""
    try:
        yield
    except CPTuningError as error:
        if str(folder) in str(error) or "pip install" in str(error):
            raise
        why = str(error).removesuffix(".")
        raise CPTuningError(f"The model folder {folder} can't be used: {why}.") from error
    except (
        OSError,
        SafetensorError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        MemoryError,
    ) as error:
        raise CPTuningError(
            f"The model folder {folder} is damaged ({_why(error)}): save or copy it again."
        ) from error


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{Path(error.filename).name}: {error.strerror}"
    return " ".join(str(error).split())[:300]  # torch says it in several lines


def _predictor(folder: Path, facts: ModelFacts, device: str, trainable: bool) -> Predictor:
    layout = read_layout(folder, facts.layout)
    if (folder / HEAD_FILE).exists():
        scorer = _scorer(folder, layout, device)
        predictor: Predictor = HeadPredictor(
            scorer, facts.label_space, facts.temperature, _read_conformal(folder)
        )
        _require_one_score_per_class(predictor)
        return predictor
    settings = facts.settings
    if isinstance(settings, RankingSettings):
        return _ranker(folder, facts, layout, settings, device)
    if not isinstance(settings, CPTuningSettings):
        raise ValueError(f"it is of the method {facts.method} and has no {HEAD_FILE}")
    support = _read_support(folder, layout.template.is_pair, facts.label_space)
    encoder = _encoder(folder, layout, settings, device, trainable)
    answering: dict[str, Any] = {
        "encoder": encoder,
        "support": support.searched(settings.index),
        "label_space": facts.label_space,
        "inference": settings.inference,
        "k": settings.k,
        "temperature": facts.temperature,
        "second_look": _second_look(folder, layout, settings, facts.clear_lead),
    }
    if facts.label_sets is None:
        predictor = EmbeddingPredictor(
            **answering,
            unknown_threshold=facts.unknown_threshold,
            least_confidence=facts.least_confidence,
            order=facts.order,
            conformal=_read_conformal(folder),
            class_prior=None if facts.class_prior is None else np.array(facts.class_prior),
        )
    else:
        calibration = facts.label_sets.calibration(facts.temperature)
        predictor = MultiLabelPredictor(**answering, calibration=calibration)
    _require_comparable(predictor)
    return predictor.with_added(read_added(folder))


def _ranker(
    folder: Path,
    facts: ModelFacts,
    layout: Layout,
    settings: RankingSettings,
    device: str,
) -> RankingPredictor:
    """A ranker's encoder is never trained: what judgements teach stands beside it."""
    support = _read_support(folder, False, facts.label_space)
    encoder = SentenceEncoder(_encoder(folder, layout, settings, device, trainable=False))
    width = encoder.embed(Examples(("a",))).shape[1]
    tuned, pair = load_judged(folder, width, settings.tuned_weight, settings.pair_weight)
    predictor = RankingPredictor(
        SentenceEncoder(encoder.encoder, tuned),
        support.searched(settings.index),
        facts.label_space,
        inference="knn",
        k=1,
        temperature=facts.temperature,
        pair=pair,
        rerank=settings.rerank,
    )
    _require_comparable(predictor)
    return predictor


def _require_one_score_per_class(predictor: Predictor) -> None:
    example = Examples(("a",), ("a",) if predictor.is_pair else None)
    if predictor.decision_scores(example).shape[1:] != (len(predictor.label_space.classes),):
        raise ValueError("it scores another number of classes than it names")


def _require_comparable(predictor: EmbeddingPredictor) -> None:
    example = Examples(("a",), ("a",) if predictor.is_pair else None)
    for encoder in (predictor.encoder, *_exact(predictor)):
        embedding = encoder.embed(example)
        if embedding.shape[1:] != predictor.support.embeddings.shape[1:]:
            raise ValueError("its embeddings and those of its examples are of different lengths")
        if not np.isfinite(embedding).all():
            raise ValueError("its weights give numbers that are not finite")


def _exact(predictor: EmbeddingPredictor) -> list[Encoder]:
    return [] if predictor.second_look is None else [predictor.second_look.encoder]


def _read_support(folder: Path, pair: bool, label_space: LabelSpace) -> SupportSet:
    stored = load_file(folder / _SUPPORT)
    # Not splitlines(): texts may hold the line separators of Unicode.
    lines = (folder / TEXTS_FILE).read_text("utf-8").split("\n")
    examples = _examples([json.loads(line) for line in lines if line], pair)
    embeddings, labels = stored["embeddings"], stored["labels"]
    if embeddings.dtype != np.float32 or labels.dtype != np.int64:
        raise ValueError("its support set has numbers of another kind")
    n_classes, is_matrix = len(label_space), isinstance(label_space, MultiLabelSpace)
    if embeddings.ndim != 2 or labels.shape[1:] != ((n_classes,) if is_matrix else ()):
        raise ValueError("its support set is of another shape")
    if not len(examples) == len(embeddings) == len(labels) > 0:
        raise ValueError("its support set is not whole")
    if not np.isfinite(embeddings).all() or np.abs(embeddings).max(initial=0) > 2:
        raise ValueError("its support set has no numbers to compare with")
    if not ((labels >= 0) & (labels < (2 if is_matrix else n_classes))).all():
        raise ValueError("its support set has other classes")
    return SupportSet(
        examples,
        embeddings,
        labels,
        weights=_weights(stored, len(labels)),
        is_description=_is_description(stored, len(labels)),
    )


def _is_description(stored: dict[str, Any], n: int) -> Flags | None:
    flags = stored.get("is_description")
    if flags is not None and (flags.dtype != np.bool_ or flags.shape != (n,)):
        raise ValueError("its support set does not say what describes a label")
    return flags


def _read_conformal(folder: Path) -> ConformalSets | None:
    """What label sets rest on; None if nothing was held out, or the folder is an older one."""
    if not (folder / _HELD_OUT).exists():
        return None
    found = load_file(folder / _HELD_OUT).get(_RIGHT)
    if found is None or found.dtype != np.float64 or found.ndim != 1 or len(found) == 0:
        raise ValueError("its held-out answers are of another kind")
    if not ((found >= 0) & (found <= 1)).all() or (np.diff(found) < 0).any():
        raise ValueError("its held-out answers are not sorted probabilities")
    return ConformalSets(found)


def _weights(stored: dict[str, Any], n: int) -> Weights | None:
    weights = stored.get("weights")
    if weights is None:
        return None
    if weights.dtype != np.float64 or weights.shape != (n,):
        raise ValueError("its support set has weights of another kind")
    if not ((weights > 0) & (weights <= _MOST_WEIGHT)).all():
        raise ValueError("its support set has weights that are impossible")
    return np.asarray(weights)


def _examples(texts: list[Any], pair: bool) -> Examples:
    left_out = [LEFT_OUT, LEFT_OUT] if pair else LEFT_OUT
    texts = [left_out if text is None else text for text in texts]
    if not pair:
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("its support set contains values that are not texts")
        return Examples(tuple(texts))
    if not all(
        isinstance(one, list) and len(one) == 2 and all(isinstance(text, str) for text in one)
        for one in texts
    ):
        raise ValueError("its support set contains values that are not pairs of texts")
    return Examples(tuple(a for a, _ in texts), tuple(b for _, b in texts))


_Settings = CPTuningSettings | RankingSettings


def _encoder(
    folder: Path, layout: Layout, settings: _Settings, device: str, trainable: bool
) -> "EmbeddedEncoder | OnnxEncoder | TextEncoder":
    if (folder / ONNX_FILE).exists():
        return _onnx_encoder(folder / ONNX_FILE, layout, settings)
    needs_torch = device not in ("auto", "cpu") or (trainable and _has_torch())
    if not needs_torch and _is_embedded(folder, settings):
        return EmbeddedEncoder.load(folder, layout, settings.pooling, settings.sentence_weight)
    with needed_for(f"The model {folder}, which was not exported,"):
        from cptuning.backbone import TextEncoder
        from cptuning.training import Processes
    there = Processes.find(device).device
    files = EncoderFiles.of(folder)
    return TextEncoder.load(
        files, layout, settings.features, there, settings.pooling, settings.sentence_weight
    )


def _is_embedded(folder: Path, settings: _Settings) -> bool:
    """Whether the package's graph computes what the model reads."""
    is_read = settings.features == "head" and settings.pooling in ("auto", "mask")
    return is_read and has_embedded_architecture(folder / BACKBONE_FOLDER)


def _has_torch() -> bool:
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return False
    return True


def _onnx_encoder(path: Path, layout: Layout, settings: _Settings) -> OnnxEncoder:
    """An exported graph, and how what it gives is joined, if it is not."""
    if not (path.parent / VIEWS_FILE).exists():
        return OnnxEncoder(layout, path)
    return OnnxEncoder(layout, path, Views.load(path.parent, settings.sentence_weight))


def _second_look(
    folder: Path, layout: Layout, settings: CPTuningSettings, clear_lead: float | None
) -> SecondLook | None:
    if clear_lead is None:
        return None
    return SecondLook(_onnx_encoder(folder / EXACT_FILE, layout, settings), clear_lead)


def _scorer(folder: Path, layout: Layout, device: str) -> Scorer:
    with needed_for(f"The model {folder}"):
        from cptuning.methods.scorer import TextScorer
        from cptuning.training import Processes
    return TextScorer.load(folder, layout, Processes.find(device).device)


def read_layout(folder: Path, layout: LayoutFacts) -> Layout:
    """How texts are laid out, with the tokenizer of a model's folder."""
    path = folder / TOKENIZER
    check_tokenizer(path, layout.vocabulary)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ValueError(f"its tokenizer can't be read: {error}") from error
    return Layout(
        tokenizer,
        layout.special,
        layout.template,
        vocabulary=layout.vocabulary,
        max_length=layout.max_length,
        trainable_words=layout.trainable_words,
        masks=layout.masks,
        text_prefix=layout.text_prefix,
        sentences=layout.sentences,
        windows=layout.windows,
    )
