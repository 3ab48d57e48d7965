"""The card of a model folder: what it is, what it was trained on, and how to use it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cptuning.inference import SupportSet
from cptuning.methods.ranking_settings import RankingSettings
from cptuning.storage.schema import SEARCH_FACTS, ModelFacts

TEXTS_FILE = "support.jsonl"
SOURCE = "https://github.com/cp-tuning/cp-tuning"
"""Where the package is developed."""
_MOST_WIDGETS = 4

_BY_EXAMPLES = "It answers with the class of the labelled examples nearest to a text."
_WITH_TEXTS = f"""\
> **Warning: this folder holds the training texts themselves** (`{TEXTS_FILE}`), since the model
> shows them as reasons for its answers. Share it only with those who may read them, or save it with
> `include_texts=False`, which leaves them out."""
_WITHOUT_TEXTS = """\
The texts of its training examples were left out of this folder, so its reasons tell
their labels and similarities alone. What was computed from the texts is here: their embeddings, and
weights that were trained on them."""
_BY_ITSELF = "It scores the classes itself, and keeps no examples unless it shows demonstrations."


@dataclass(frozen=True)
class CardFacts:
    """What a card says that only the owner of the model knows."""

    hub_id: str | None = None
    language: str | Sequence[str] | None = None
    license: str | None = None
    widget: Sequence[str] = ()
    """Texts to try the model on, on its page."""


def _of_descriptions(facts: dict[str, float] | None) -> list[tuple[str, str]]:
    """How many descriptions of labels the model was given, and what became of them."""
    if facts is None:
        return []
    return [("Descriptions of labels", f"{facts['texts']}, each weighs {facts['weight']:g}")]


def card(facts: ModelFacts, support: SupportSet | None, more: CardFacts) -> str:
    """The card as Markdown, with the hub's metadata."""
    if isinstance(facts.settings, RankingSettings):
        return _ranker_card(facts)
    training, settings = facts.training, facts.to_json()["settings"]
    held_out = training["held_out_accuracy"]
    measure = "Accuracy" if facts.label_sets is None else "Mean F1 of the label sets"
    score = "not measured" if held_out is None else f"{100 * held_out:.1f} %"
    words = settings.get("label_words") or {}
    rows = [
        ("Method", facts.method),
        (
            "Classes" if facts.label_sets is None else "Labels, several per text or none",
            ", ".join(map(str, facts.label_space.classes)),
        ),
        ("Training examples", ", ".join(f"{c}: {n}" for c, n in training["examples"].items())),
        *([("Labelled examples it compares with", str(support.n_examples))] if support else []),
        *_of_descriptions(training.get("descriptions")),
        (f"{measure} on held-out examples ({training['validation']})", score),
        ("Backbone", facts.backbone),
        ("Prompt", f"`{facts.layout.template.source}`"),
        *([("Label words", ", ".join(f"{c}: {w}" for c, w in words.items()))] if words else []),
        *((title, str(training[name])) for name, title in SEARCH_FACTS.items() if name in training),
        ("Training steps kept", str(training["best_step"])),
        ("Seed", str(training["seed"])),
        ("Versions", ", ".join(f"{p} {v}" for p, v in facts.versions.items())),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    setting_rows = "\n".join(f"| {name} | `{value}` |" for name, value in settings.items())
    explain = 'classifier.explain(["a new text"])\n' if support else ""
    texts = "" if not support else _WITH_TEXTS if len(support.examples.known) else _WITHOUT_TEXTS
    return f"""---
{_metadata(facts, support, more)}
---

# A text classifier made with cptuning

{texts}

| | |
|---|---|
{table}

{_BY_EXAMPLES if support else _BY_ITSELF}
It was trained on few examples: check it on texts of your own before you rely on it.

```python
import cptuning

classifier = cptuning.load("{more.hub_id or "this folder"}")
classifier.predict(["a new text"])
{explain}```

## Settings

| | |
|---|---|
{setting_rows}
"""


def ranking_rows(facts: ModelFacts) -> list[tuple[str, str]]:
    """What distinguishes a ranker: its documents, and what judgements taught it."""
    training = facts.training
    held_out = training.get("held_out_kept_ndcg")
    return [
        ("Method", "ranking"),
        ("Documents", str(len(facts.label_space))),
        ("Judged queries", str(training.get("judged_queries", 0))),
        ("Kept of what they taught", ", ".join(training.get("kept", [])) or "nothing"),
        (
            "nDCG@10 of judged queries, each left out",
            "not measured" if held_out is None else f"{held_out:.3f}",
        ),
        ("Backbone", facts.backbone),
        ("Seed", str(training["seed"])),
        ("Versions", ", ".join(f"{p} {v}" for p, v in facts.versions.items())),
    ]


def _ranker_card(facts: ModelFacts) -> str:
    table = "\n".join(f"| {name} | {value} |" for name, value in ranking_rows(facts))
    settings = facts.to_json()["settings"].items()
    setting_rows = "\n".join(f"| {name} | `{value}` |" for name, value in settings)
    return f"""# A ranker of documents made with cptuning

| | |
|---|---|
{table}

The folder holds the documents themselves (`{TEXTS_FILE}`): share it only with those who may read
them.

```python
import cptuning

ranker = cptuning.load("this folder")
ranker.rank("a query", top_k=10)
```

## Settings

| | |
|---|---|
{setting_rows}
"""


def _metadata(facts: ModelFacts, support: SupportSet | None, more: CardFacts) -> str:
    """What the hub reads: YAML, one key per line, with values as JSON, which YAML includes."""
    found = facts.training.get("backbone", {})
    is_embedded = facts.backbone == "embedded"
    data: dict[str, Any] = {
        "language": more.language or ("en" if is_embedded else None),
        **_license(more.license, is_embedded),
        "library_name": "cptuning",
        "pipeline_tag": "text-classification",
        "tags": ["cptuning", facts.method, "few-shot", "text-classification"],
        "base_model": found["name"] if "revision" in found else None,
        "metrics": [_metric(facts)[0]],
        "widget": [{"text": text} for text in _widget(support, more)],
        "model-index": _measured(facts, more.hub_id or "model"),
    }
    given = {name: value for name, value in data.items() if value}
    return "\n".join(f"{name}: {_as_yaml(value)}" for name, value in given.items())


def _license(given: str | None, is_embedded: bool) -> dict[str, Any]:
    """The model's licence; that of the embedded weights is told unless the owner knows better."""
    if given is not None or not is_embedded:
        return {"license": given}
    return {
        "license": "other",
        "license_name": "research-and-evaluation",
        "license_link": f"{SOURCE}/blob/main/src/cptuning/backbone/embedded/README.md",
    }


def _widget(support: SupportSet | None, more: CardFacts) -> Sequence[str]:
    """Texts to try: those of the owner, or an example of each of the first classes."""
    if more.widget or support is None or support.examples.is_pair or support.labels.ndim != 1:
        return more.widget
    firsts = {int(label): row for row, label in reversed([*enumerate(support.labels)])}
    some = support.examples.take(row for _, row in sorted(firsts.items())[:_MOST_WIDGETS])
    return some.known.first


def _measured(facts: ModelFacts, name: str) -> list[dict[str, Any]]:
    """The held-out accuracy as the hub lists results."""
    held_out = facts.training["held_out_accuracy"]
    if held_out is None:
        return []
    kind, name_of_it = _metric(facts)
    examples = f"held-out examples ({facts.training['validation']})"
    result = {
        "task": {"type": "text-classification"},
        "dataset": {"type": "held-out", "name": examples},
        "metrics": [{"type": kind, "value": round(held_out, 6), "name": name_of_it}],
    }
    return [{"name": name, "results": [result]}]


def _metric(facts: ModelFacts) -> tuple[str, str]:
    """What the held-out score is: its name on the hub, and for people."""
    return ("accuracy", "Accuracy") if facts.label_sets is None else ("f1", "Mean F1")


def _as_yaml(value: Any) -> str:
    r"""JSON whose characters every reader of YAML takes as they are.

    >>> print(_as_yaml(["naïve 😀", "a\u2028b"]))
    ["naïve 😀", "a\U00002028b"]
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
