"""The card of a model folder: what it is, what it was trained on, and how to use it."""

from cptuning.inference import SupportSet
from cptuning.methods.ranking_settings import RankingSettings
from cptuning.storage.schema import SEARCH_FACTS, ModelFacts

TEXTS_FILE = "support.jsonl"

_BY_EXAMPLES = (
    "It answers with the class of the labelled examples nearest to a text, and can show them: the\n"
    f"folder holds the training texts themselves (`{TEXTS_FILE}`), share it only with those who\n"
    "may read them."
)
_BY_ITSELF = "It scores the classes itself, and keeps no examples unless it shows demonstrations."


def card(facts: ModelFacts, support: SupportSet | None) -> str:
    """The card as Markdown."""
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
        *([("Labelled examples it compares with", str(len(support)))] if support else []),
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
