"""Example requests for the OpenAPI page, of the kind that the served model takes."""

from typing import Any

_TEXTS = ["where is my parcel?", "what a wonderful film"]
_LABELS = ["delivery", "praise"]
_PAIRS = [["is it red?", "it is red."], ["is it red?", "the train leaves at ten."]]


def request_examples(kind: str, *, pairs: bool, label_sets: bool = False) -> dict[str, Any]:
    """Request bodies by name, for ``predict``, ``embed`` or ``examples``; the first is the default.

    >>> request_examples("embed", pairs=False)["Several texts"]["value"]
    {'texts': ['where is my parcel?', 'what a wonderful film']}
    """
    more: dict[str, Any] = {"explain": 2} if kind == "predict" else {}
    if kind == "examples":
        more = {"labels": [["delivery"], ["praise", "film"]] if label_sets else _LABELS}
    single = {"Several texts": {"value": {"texts": _TEXTS, **more}}}
    if kind == "predict":
        single["One text"] = {"value": {"texts": _TEXTS[0]}}
    pair = {"Pairs of texts": {"value": {"texts": _PAIRS, **more}}}
    return {**pair, **single} if pairs else {**single, **pair}
