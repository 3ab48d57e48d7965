"""A fitted model as a folder: safetensors, JSON, the tokenizer and a card; nothing is unpickled."""

import json
import secrets
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from cptuning.data import Examples, LabelSpace, read_lessons
from cptuning.errors import CPTuningError
from cptuning.estimator import TextClassifier
from cptuning.extras import needed_for
from cptuning.inference import (
    EmbeddingPredictor,
    Encoder,
    HeadPredictor,
    Predictor,
    Scorer,
    SecondLook,
    SupportSet,
)
from cptuning.inference.onnx_encoder import EXACT_FILE, ONNX_FILE, OnnxEncoder
from cptuning.inference.predictor import HEAD_FILE
from cptuning.methods.cp_tuning_settings import CPTuningSettings
from cptuning.prompting import Layout, SpecialTokens, Template
from cptuning.registry import classifier_class

FORMAT = 1
FACTS_FILE = "cptuning.json"
_FACTS = frozenset(
    [
        "method",
        "classes",
        "parameters",
        "settings",
        "layout",
        "temperature",
        "unknown_threshold",
        "training",
        "versions",
    ]
)
_SUPPORT = "support.safetensors"
_TEXTS = "support.jsonl"
_TOKENIZER = "tokenizer.json"
SEARCH_FACTS = {
    "search": "Searched for",
    "candidates": "Candidates",
    "candidate_steps": "Steps a candidate",
    "pattern_weights": "Patterns and their weights",
}
"""What a method that searches, or trains several models, states in every result."""
_PACKAGES = ("cptuning", "numpy", "torch", "transformers", "tokenizers", "scikit-learn")


def save(classifier: TextClassifier, folder: Path) -> None:
    """Write a classifier that was trained here."""
    with new_folder(folder) as place:
        write_common(classifier, place)
        classifier.predictor_.save(place)


def write_common(classifier: TextClassifier, place: Path) -> None:
    """Write what every kind of model folder holds: facts, tokenizer, support set, card."""
    predictor = classifier.predictor_
    layout = predictor.encoder.layout
    facts = {
        "format": FORMAT,
        "method": classifier.method,
        "classes": predictor.label_space.to_json(),
        "parameters": _plain(classifier),
        "settings": _json(asdict(classifier.settings_)),
        "layout": {
            "special": layout.special.to_json(),
            "template": layout.template.source,
            "vocabulary": layout.vocabulary,
            "max_length": layout.max_length,
            "trainable_words": layout.trainable_words,
            "masks": layout.masks,
        },
        "temperature": predictor.temperature,
        "unknown_threshold": predictor.unknown_threshold,
        "clear_lead": predictor.second_look and predictor.second_look.clear_lead,
        "training": classifier.training_,
        "versions": versions(),
    }
    (place / FACTS_FILE).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8")
    layout.save_tokenizer(place / _TOKENIZER)
    if predictor.support is not None:
        _write_support(predictor.support, place)
    (place / "README.md").write_text(_card(facts, predictor.support), "utf-8")


def _write_support(support: SupportSet, place: Path) -> None:
    save_file({"embeddings": support.embeddings, "labels": support.labels}, place / _SUPPORT)
    with (place / _TEXTS).open("w", encoding="utf-8") as file:
        for text in support.examples:
            file.write(json.dumps(text, ensure_ascii=False) + "\n")


def _read_support(folder: Path, pair: bool, n_classes: int) -> SupportSet:
    stored = load_file(folder / _SUPPORT)
    # Not splitlines(): texts may hold the line separators of Unicode.
    lines = (folder / _TEXTS).read_text("utf-8").split("\n")
    texts = [json.loads(line) for line in lines if line]
    support = SupportSet(_examples(texts, pair), stored["embeddings"], stored["labels"])
    if not len(support.examples) == len(support.embeddings) == len(support.labels):
        raise ValueError("its support set is not whole")
    if not (np.isfinite(support.embeddings).all() and support.embeddings.ndim == 2):
        raise ValueError("its support set has no numbers to compare with")
    if not ((support.labels >= 0) & (support.labels < n_classes)).all():
        raise ValueError("its support set has other classes")
    return support


def load(folder: str | Path, device: str = "auto") -> TextClassifier:
    """The classifier that was saved to, or exported to, a folder.

    >>> load("no-such-folder")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no model folder 'no-such-folder': ...
    """
    folder = Path(folder)
    facts = read_facts(folder)
    try:
        kind = classifier_class(facts["method"])
        classifier = kind(**facts["parameters"])
        classifier.settings_ = kind.settings_class(**_with_tuples(facts["settings"]))
        classifier.training_ = facts["training"]
        classifier.held_out_score_ = facts["training"]["held_out_accuracy"]
        classifier.predictor_ = _predictor(folder, facts, classifier.settings_, device)
    except CPTuningError:
        raise
    except (OSError, SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())  # torch tells in several lines
        raise CPTuningError(
            f"The model folder {folder} is damaged ({why}): save or copy it again."
        ) from error
    return classifier


def _predictor(folder: Path, facts: dict[str, Any], settings: Any, device: str) -> Predictor:
    layout = _layout(folder, facts["layout"])
    label_space = LabelSpace.from_json(facts["classes"])
    if not (isinstance(facts["temperature"], int | float) and facts["temperature"] > 0):
        raise ValueError(f"its temperature is {facts['temperature']!r}")
    if (folder / HEAD_FILE).is_file():
        return HeadPredictor(_scorer(folder, layout, device), label_space, facts["temperature"])
    threshold = facts["unknown_threshold"]
    if not (threshold is None or isinstance(threshold, int | float)):
        raise ValueError(f"its unknown_threshold is {threshold!r}")
    return EmbeddingPredictor(
        _encoder(folder, layout, settings, device),
        _read_support(folder, layout.template.is_pair, len(label_space.classes)).searched(
            settings.index
        ),
        label_space,
        inference=settings.inference,
        k=settings.k,
        temperature=facts["temperature"],
        unknown_threshold=facts["unknown_threshold"],
        second_look=_second_look(folder, layout, facts.get("clear_lead")),
    ).taught(read_lessons(folder))


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Settings as they were before JSON made lists of their tuples."""
    return {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}


def _encoder(folder: Path, layout: Layout, settings: CPTuningSettings, device: str) -> Encoder:
    if (folder / ONNX_FILE).is_file():
        return OnnxEncoder(layout, folder / ONNX_FILE)
    with needed_for(f"The model {folder}, which was not exported,"):
        from cptuning.backbone import TextEncoder
        from cptuning.training import Processes
    return TextEncoder.load(folder, layout, settings.features, Processes.find(device).device)


def _second_look(folder: Path, layout: Layout, clear_lead: Any) -> SecondLook | None:
    if clear_lead is None:
        return None
    if not (isinstance(clear_lead, int | float) and clear_lead >= 0):  # NaN is not
        raise ValueError(f"its clear_lead is {clear_lead!r}")
    return SecondLook(OnnxEncoder(layout, folder / EXACT_FILE), clear_lead)


def _scorer(folder: Path, layout: Layout, device: str) -> Scorer:
    with needed_for(f"The model {folder}"):
        from cptuning.methods.scorer import TextScorer
        from cptuning.training import Processes
    return TextScorer.load(folder, layout, Processes.find(device).device)


def _layout(folder: Path, facts: dict[str, Any]) -> Layout:
    try:
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:
        raise ValueError(f"its tokenizer can't be read: {error}") from error
    return Layout(
        tokenizer,
        SpecialTokens.from_json(facts["special"]),
        Template.parse(facts["template"]),
        vocabulary=facts["vocabulary"],
        max_length=facts["max_length"],
        trainable_words=facts.get("trainable_words", True),
        masks=facts.get("masks", 1),
    )


def _examples(texts: list[Any], pair: bool) -> Examples:
    if pair:
        return Examples(tuple(a for a, _ in texts), tuple(b for _, b in texts))
    return Examples(tuple(texts))


def read_facts(folder: Path) -> dict[str, Any]:
    """What a model folder says of itself, without loading the model.

    >>> read_facts(Path("no-such-folder"))
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no model folder 'no-such-folder': ...
    """
    if not folder.is_dir():
        raise CPTuningError(
            f"There is no model folder {str(folder)!r}: "
            "make one with `cptuning fit` or a classifier's save."
        )
    path = folder / FACTS_FILE
    if not path.is_file():
        raise CPTuningError(f"The folder {folder} holds no CP-Tuning model (no {FACTS_FILE}).")
    try:
        facts = json.loads(path.read_text("utf-8"))
        format_number = int(facts["format"])
        missing = set() if format_number > FORMAT else _FACTS - set(facts)
        if missing:
            raise KeyError(", ".join(sorted(missing)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CPTuningError(f"{path} is damaged ({error}): save the model again.") from error
    if format_number > FORMAT:
        raise CPTuningError(
            f"The model {folder} was written by a newer cptuning (format {format_number}, this one "
            f"reads up to {FORMAT}): pip install --upgrade cptuning."
        )
    return dict(facts)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside the wanted one, that takes its place when all is written.

    An earlier model in that place is replaced; anything else is never touched.
    """
    folder = folder.absolute()
    temporary = _folder_beside(folder)
    try:
        yield temporary
        _open_to_readers(temporary)
        old = None
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
            folder.rename(old / "model")
        temporary.rename(folder)
        if old is not None:
            shutil.rmtree(old)
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        raise CPTuningError(f"{folder} can't be written: {why}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _open_to_readers(folder: Path) -> None:
    """Let those read the files who may read the folder: safetensors keeps its files private."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)


def check_place(folder: Path) -> None:
    """Refuse a place that a model can't be saved to: before hours of training, not after."""
    _folder_beside(folder.absolute()).rmdir()


def _folder_beside(folder: Path) -> Path:
    if folder.exists() and not (folder / FACTS_FILE).is_file() and not _is_empty(folder):
        raise CPTuningError(f"{folder} exists and is no CP-Tuning model: choose another place.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}")
        temporary.mkdir()
        return temporary
    except OSError as error:
        raise CPTuningError(f"{folder} can't be written: {error.strerror}.") from error


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _plain(classifier: TextClassifier) -> dict[str, Any]:
    """The parameters that can be stored; what is of this machine or process alone is left out."""
    here_only = ["callbacks", "checkpoint_dir", "checkpoint_seconds", "device", "verbose"]
    if isinstance(classifier.random_state, np.random.RandomState | np.random.Generator):
        here_only.append("random_state")  # The seed that was drawn from it is in the card.
    values = {n: getattr(classifier, n) for n in classifier.parameter_names() if n not in here_only}
    if not isinstance(classifier.backbone, str | Path):  # It was loaded already.
        values["backbone"] = classifier.backbone.name
    return {name: _json(value) for name, value in values.items() if value is not None}


def _json(value: Any) -> Any:
    """A parameter as JSON has it: grids are often of numpy's numbers.

    >>> _json(np.int64(3)), _json((np.float32(0.5), Path("a")))
    (3, [0.5, 'a'])
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [_json(one) for one in value]
    if isinstance(value, dict):
        return {key: _json(one) for key, one in value.items()}
    return str(value) if isinstance(value, Path) else value


def versions() -> dict[str, str]:
    """The versions of the packages that a result depends on, as far as they are installed.

    >>> "numpy" in versions()
    True
    """
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    # On a machine that only trains the sources may be there without having been installed.
    project = Path(__file__).parents[2] / "pyproject.toml"
    if "cptuning" not in found and project.is_file():
        found["cptuning"] = tomllib.loads(project.read_text("utf-8"))["project"]["version"]
    return found


def _card(facts: dict[str, Any], support: SupportSet | None) -> str:
    training = facts["training"]
    held_out = training["held_out_accuracy"]
    score = "not measured" if held_out is None else f"{100 * held_out:.1f} %"
    words = facts["settings"].get("label_words") or {}
    rows = [
        ("Method", facts["method"]),
        ("Classes", ", ".join(map(str, facts["classes"]))),
        ("Training examples", ", ".join(f"{c}: {n}" for c, n in training["examples"].items())),
        *([("Labelled examples it compares with", str(len(support)))] if support else []),
        (f"Accuracy on held-out examples ({training['validation']})", score),
        ("Backbone", str(facts["parameters"].get("backbone", "embedded"))),
        ("Prompt", f"`{facts['layout']['template']}`"),
        *([("Label words", ", ".join(f"{c}: {w}" for c, w in words.items()))] if words else []),
        *((title, str(training[name])) for name, title in SEARCH_FACTS.items() if name in training),
        ("Training steps kept", str(training["best_step"])),
        ("Seed", str(training["seed"])),
        ("Versions", ", ".join(f"{p} {v}" for p, v in facts["versions"].items())),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    settings = "\n".join(f"| {name} | `{value}` |" for name, value in facts["settings"].items())
    explain = 'classifier.explain(["a new text"])\n' if support else ""
    return f"""# A text classifier made with cptuning

| | |
|---|---|
{table}

{_BY_EXAMPLES if support else _BY_ITSELF} It was
trained on few examples: check it on texts of your own before you rely on it.

```python
import cptuning

classifier = cptuning.load("this folder")
classifier.predict(["a new text"])
{explain}```

## Settings

| | |
|---|---|
{settings}
"""


_BY_EXAMPLES = (
    "It answers with the class of the labelled examples nearest to a text, and can show them: the\n"
    f"folder holds the training texts themselves (`{_TEXTS}`), share it only with those who may\n"
    "read them."
)
_BY_ITSELF = "It scores the classes itself, and keeps no examples unless it shows demonstrations."
