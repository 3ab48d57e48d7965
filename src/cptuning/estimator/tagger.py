"""The scikit-learn face of the tagger: fit, predict, explain, add examples, save."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cptuning.data.sentences import TaggedSentences, as_sentences, as_tagged
from cptuning.data.tag_schemes import iob2_of
from cptuning.errors import CPTuningError
from cptuning.estimator.parameters import described
from cptuning.estimator.text_model import TextModel, seed_of
from cptuning.extras import needed_for
from cptuning.files.places import as_path
from cptuning.inference.tag_predictor import TagPredictor
from cptuning.inference.word_answers import HeldOutSpans
from cptuning.methods.tagging_settings import TAGGER_PRESETS, TaggerSettings
from cptuning.settings import resolve_preset
from cptuning.storage import OF_ONE_MACHINE
from cptuning.storage.taggers import TaggerFacts, save_tagger

if TYPE_CHECKING:
    from cptuning.backbone import Backbone
    from cptuning.training import Callback


@described
class CPTuningTagger(TextModel):
    """Finds spans, such as names or the slots of a request, from a few labelled sentences.

    The preset "default" trains the backbone with PCCL on words, "instant" does not train. The same
    seed, number of threads and data give the same answers.

    Examples
    --------
    >>> texts = ["a table in Rome", "fly me to Oslo", "is it cold in Lima today", "see you in May"]
    >>> spans = [[(11, 15, "city")], [(10, 14, "city")], [(14, 18, "city")], []]
    >>> tagger = CPTuningTagger(preset="instant", verbose=False).fit(texts, spans)
    >>> tagger.classes_.tolist()
    ['city']
    >>> tagger.predict([["a", "table", "in", "Rome"]])
    [['O', 'O', 'O', 'B-city']]
    >>> [[found]] = tagger.predict_spans(["a table in Rome"])
    >>> found["text"], found["label"], found["start"], found["end"]
    ('Rome', 'city', 11, 15)

    """

    method = "tagger"
    learner = "cptuning.methods.tagging:fit_tagger"
    settings_class = TaggerSettings
    presets = TAGGER_PRESETS
    own_parameters: ClassVar[dict[str, tuple[str, str]]] = {}
    attributes: ClassVar[dict[str, tuple[str, str]]] = {
        "classes_": ("ndarray", "The types of spans."),
        "settings_": (
            "TaggerSettings",
            "The settings of the fit: those given, and otherwise the preset's.",
        ),
        "predictor_": ("TagPredictor", "The fitted tagger, without its training state."),
        "held_out_score_": (
            "float or None",
            "F1 over the spans in held-out training sentences, with the classification that they "
            "selected; None if nothing was held out.",
        ),
        "held_out_": (
            "HeldOutSpans or None",
            "The spans found in held-out training sentences; they are not saved.",
        ),
        "training_": ("dict", "What the model card says about the fit: sentences, seed, ..."),
    }
    predictor_: TagPredictor  # type: ignore[assignment]
    held_out_: HeldOutSpans | None

    def __init__(
        self,
        backbone: "str | Backbone" = "embedded",
        preset: str = "default",
        random_state: Any = 0,
        *,
        validation: str = "cross-fit",
        folds: int = 2,
        device: str = "auto",
        precision: Any = "auto",
        verbose: bool = True,
        callbacks: "Sequence[Callback] | None" = None,
        max_length: int | None = None,
        depth: float | None = None,
        pieces: str | None = None,
        inference: str | None = None,
        shape_weight: float | None = None,
        margin: float | None = None,
        tau_n: float | None = None,
        xi: float | None = None,
        outside_ratio: float | None = None,
        frozen_share: float | None = None,
        optimizer: str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        warmup: float | None = None,
        clip_norm: float | None = None,
        batch_size: int | None = None,
        accumulate: int | None = None,
        steps: int | None = None,
        epochs: int | None = None,
        most_steps: int | None = None,
    ) -> None:
        # scikit-learn's rule: store what was given under its own name, and look at it in fit.
        given = locals()
        for name in self.parameter_names():
            setattr(self, name, given[name])

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from sentences with tags, or from texts with spans.

        ``X`` has lists of words, and ``y`` a list of tags for each, in IOB1, IOB2, BIOES or BILOU;
        or ``X`` has texts, and ``y`` a list of spans for each: dictionaries with ``start``, ``end``
        and ``label``, or those three in this order.
        """
        return self.fit_tagged(as_tagged(X, y))

    def fit_tagged(self, examples: TaggedSentences) -> Self:
        """Learn from sentences that were read from a file."""
        with needed_for("A tagger's fit"):
            from cptuning.methods.tagging import TaggerTraining, check_examples, fit_tagger
            from cptuning.training import Processes, ProgressBar
        from cptuning.backbone import describe

        check_examples(examples)
        if self.validation not in ("cross-fit", "none"):
            raise CPTuningError(
                f"validation is {self.validation!r}: choose one of ('cross-fit', 'none')."
            )
        settings = self._tagger_settings(len(examples))
        backbone, _ = self._start(None, settings.template)
        seed = seed_of(self.random_state)
        fitted = fit_tagger(
            TaggerTraining(
                backbone,
                settings,
                examples,
                Processes.find(self.device),
                folds=self.folds if self.validation == "cross-fit" else 0,
                seed=seed,
                precision=self.precision,
                callbacks=[*([ProgressBar()] if self.verbose else []), *(self.callbacks or [])],
            )
        )
        self.settings_ = fitted.settings
        self.predictor_ = fitted.predictor
        self.held_out_ = fitted.held_out
        self.held_out_score_ = fitted.held_out and fitted.held_out.f1
        counts = dict.fromkeys(fitted.predictor.types, 0)
        for spans in examples.spans:
            for span in spans:
                counts[span.label] += 1
        self.training_ = {
            "sentences": len(examples),
            "spans": counts,
            "held_out_f1": self.held_out_score_,
            "seed": seed,
            "backbone": describe(backbone),
            **fitted.facts,
        }
        return self

    def _tagger_settings(self, n: int) -> TaggerSettings:
        names = set(TaggerSettings.__dataclass_fields__)
        given = {name: getattr(self, name) for name in self.parameter_names() if name in names}
        changes = {name: value for name, value in given.items() if value is not None}
        return resolve_preset(
            self.presets, self.preset, pair=False, classes=2, **changes
        ).scaled_to(n)

    @property
    def classes_(self) -> Any:
        """The types of spans."""
        import numpy as np

        return np.array(self._tagger().types)

    def predict(self, X: Any) -> list[list[str]]:
        """The tags of each sentence's words, in IOB2; a text is split into words."""
        sentences = as_sentences(X)
        return [
            iob2_of([one.span for one in found], len(sentence))
            for sentence, found in zip(sentences, self._tagger().found(sentences), strict=True)
        ]

    def predict_spans(self, X: Any) -> list[list[dict[str, Any]]]:
        """The spans of each text: ``text``, ``label``, ``start``, ``end`` and ``score``.

        ``start`` and ``end`` count characters. The score is the mean probability of the tags.
        """
        sentences = as_sentences(X)
        return [
            [sentence.marked(one.span) | {"score": one.score} for one in found]
            for sentence, found in zip(sentences, self._tagger().found(sentences), strict=True)
        ]

    def explain(self, X: Any, k: int = 3) -> list[list[dict[str, Any]]]:
        """The spans of each text, each with ``nearest``: the k labelled spans that are most alike.

        Each of these has its ``text``, ``label``, ``similarity`` and ``sentence``.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise CPTuningError(f"k is {k!r}: give a whole number above 0.")
        sentences = as_sentences(X)
        explained = self._tagger().explain(sentences, k)
        return [
            [
                sentence.marked(one.span)
                | {"score": one.score, "nearest": [vars(reason).copy() for reason in reasons]}
                for one, reasons in found
            ]
            for sentence, found in zip(sentences, explained, strict=True)
        ]

    def transform(self, X: Any) -> list[Any]:  # type: ignore[override]
        """For each sentence the unit vectors of its words, float32."""
        return self._tagger().encoder.embed(as_sentences(X))

    def score(self, X: Any, y: Any) -> float:
        """F1 over spans by seqeval's strict rule: type, beginning and end must be right."""
        tagged = as_tagged(X, y)
        found = self._tagger().found(tagged.sentences)
        answers = tuple(tuple(one.span for one in spans) for spans in found)
        return HeldOutSpans(tagged.spans, answers).f1

    def add_examples(self, X: Any, y: Any) -> Self:
        """Add sentences to compare with, also with new types, without training.

        Sentences that are there already can have spans of a new type: give them again, with all of
        their spans, and they take the place of the old ones.
        """
        more = as_tagged(X, y)
        tagger = self._tagger()
        again = {sentence.words for sentence in more.sentences}
        self.predictor_ = tagger.without(again).with_added(more)
        return self

    def save(self, folder: str | Path) -> None:
        """Write the tagger to a folder: safetensors, JSON, the tokenizer and a card."""
        save_tagger(self.tagger_facts(), self._tagger(), as_path(folder, "folder"))

    def export(self, folder: str | Path, *, int8: bool = False, second_look: bool = True) -> None:
        """Write the tagger as ONNX, to a folder that predicts without torch.

        It cannot be trained further. ``int8`` and ``second_look`` do not apply to taggers.
        """
        if int8:
            raise CPTuningError("A tagger can't be exported in 8 bits: leave int8 out.")
        tagger = self._tagger()
        with needed_for("An export"):
            from cptuning.export.tagger_export import export_tagger

            export_tagger(self.tagger_facts(), tagger, as_path(folder, "folder"))

    def tagger_facts(self) -> TaggerFacts:
        """The facts that a folder of this tagger contains."""
        names = [name for name in self.parameter_names() if name not in OF_ONE_MACHINE]
        parameters = {name: getattr(self, name) for name in names}
        if not isinstance(parameters["random_state"], int):
            del parameters["random_state"]  # The seed that was drawn from it is in the facts.
        if not isinstance(self.backbone, str | Path):  # It was loaded already.
            parameters["backbone"] = self.backbone.name
        return TaggerFacts.of(
            self._tagger(), parameters=parameters, settings=self.settings_, training=self.training_
        )

    def _tagger(self) -> TagPredictor:
        found: Any = self._fitted()
        assert isinstance(found, TagPredictor)
        return found
