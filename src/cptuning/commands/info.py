"""cptuning info: what a model folder contains, without loading the model."""

from pathlib import Path
from typing import Any

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table
from cptuning.reporting.formatting import format_percent


def info(model: options.Model, as_json: options.Json = False) -> None:
    """Describe a model: its classes, training data, accuracy, settings and versions."""
    from cptuning.data import read_added
    from cptuning.storage import SEARCH_FACTS, find_model, read_facts
    from cptuning.storage.card import ranking_rows
    from cptuning.storage.folders import is_tagger

    model = find_model(model)
    if is_tagger(model):
        _describe_tagger(model, as_json)
        return
    read = read_facts(model)
    facts = read.to_json() | _of_folder(model)
    facts["backbone"] = read.backbone
    facts["added"] = sum(len(batch.labels) for batch in read_added(model))
    if as_json:
        print_json(facts)
    elif read.method == "ranking":
        print_table([(name.lower(), value) for name, value in ranking_rows(read)])
    else:
        search = {t.lower(): facts["training"].get(n) for n, t in SEARCH_FACTS.items()}
        print_table(_rows(model, facts, {t: v for t, v in search.items() if v is not None}))


def _of_folder(model: Path) -> dict[str, Any]:
    from cptuning.inference.onnx_encoder import ONNX_FILE

    return {
        "kind": "onnx" if (model / ONNX_FILE).is_file() else "torch",
        "bytes": sum(path.stat().st_size for path in model.rglob("*") if path.is_file()),
    }


def _describe_tagger(model: Path, as_json: bool) -> None:
    from cptuning.storage.taggers import n_sentences, read_tagger_facts, tagger_rows

    facts, sentences = read_tagger_facts(model), n_sentences(model)
    if as_json:
        print_json(facts.to_json() | _of_folder(model) | {"sentences": sentences})
    else:
        rows = [("Method", "tagger"), *tagger_rows(facts, sentences)]
        print_table([(name.lower(), value) for name, value in rows])


def _of_descriptions(facts: dict[str, Any] | None) -> list[tuple[str, str]]:
    if facts is None:
        return []
    return [("descriptions", f"{facts['texts']} of labels, each weighs {facts['weight']:g}")]


def _rows(model: Path, facts: dict[str, Any], search: dict[str, Any]) -> list[tuple[str, str]]:
    training = facts["training"]
    accuracy = training["held_out_accuracy"]
    label_sets = facts.get("label_sets") is not None
    threshold, lead = facts["unknown_threshold"], facts.get("clear_lead")
    kinds = {"onnx": "exported, predicts without torch", "torch": "can be trained further"}
    return [
        ("model", f"{model} ({facts['bytes'] / 1e6:.0f} MB, {kinds[facts['kind']]})"),
        ("method", str(facts["method"])),
        ("labels" if label_sets else "classes", ", ".join(map(str, facts["classes"]))),
        ("trained on", ", ".join(f"{c} {n}" for c, n in training["examples"].items())),
        *_of_descriptions(training.get("descriptions")),
        *([("added since", f"{facts['added']} examples")] if facts["added"] else []),
        (
            "held-out F1" if label_sets else "held-out accuracy",
            "not measured"
            if accuracy is None
            else f"{format_percent(accuracy)} ({training['validation']})",
        ),
        ("backbone", facts["backbone"]),
        ("prompt", facts["layout"]["template"]),
        *((title, str(value)) for title, value in search.items()),
        ("steps", str(training["best_step"])),
        ("seed", str(training["seed"])),
        ("unknown below", _unknown_below(threshold, facts["least_confidence"])),
        *([] if lead is None else [("looks again at", f"leads below {lead:.4f}")]),
        *((name, str(value)) for name, value in facts["settings"].items() if name != "template"),
        ("versions", ", ".join(f"{p} {v}" for p, v in facts["versions"].items())),
    ]


def _unknown_below(similarity: float | None, confidence: float | None) -> str:
    """What makes a text "unknown"."""
    if confidence is not None:
        return f"a confidence of {100 * confidence:.1f} %"
    return "never" if similarity is None else f"a similarity of {similarity:.3f}"
