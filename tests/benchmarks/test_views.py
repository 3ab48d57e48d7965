"""The tables by which the presets of two views are chosen."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import few_shot, views
from cptuning.errors import CPTuningError
from cptuning.files.journal import Journal
from cptuning.methods.cp_tuning_settings import PRESETS

FOLDER = Path(__file__).parents[2]
DOCUMENTED = (FOLDER / "docs/presets.md").read_text("utf-8")


@pytest.fixture(scope="module")
def records():
    return Journal(FOLDER / views.RECORDS).entries(dict)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A training file with a repeated text, and no test file."""
    monkeypatch.setenv("CPTUNING_DATA", str(tmp_path))
    (tmp_path / "CR").mkdir()
    rows = [{"text_a": f"{word} {n % 59}", "label": word} for n in range(60) for word in ("a", "b")]
    with gzip.open(tmp_path / "CR" / "train.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    views._pool.cache_clear()
    yield tmp_path
    views._pool.cache_clear()


def test_the_shipped_runs_make_the_documented_tables(records):
    for kind in views.SETS:
        made = views.table(records, kind)
        assert len(made.splitlines()) == 2 + 2 * len(views.variants_of(kind))
        assert made in DOCUMENTED


def chosen(records, kind, takes_part):
    """Within a standard error of the best row the first is taken."""
    runs = {}
    for r in records:
        if r["kind"] == kind and r["dataset"] in views.SETS[kind] and takes_part(r["variant"]):
            for answer in views.ANSWERS:
                found = runs.setdefault((r["variant"], answer), {})
                found[r["dataset"], r["seed"], r["backbone"]] = r["accuracy"][answer]
    whole = max(map(len, runs.values()))
    runs = {row: found for row, found in runs.items() if len(found) == whole}
    best = max(runs.values(), key=lambda found: np.mean(list(found.values())))
    for variant in filter(takes_part, views.variants_of(kind)):
        for answer in views.ANSWERS:
            gaps = [best[key] - runs[variant, answer][key] for key in best]
            if np.mean(gaps) <= np.std(gaps, ddof=1) / len(gaps) ** 0.5:
                return variant
    raise AssertionError


def answer_of(records, kind):
    """The one with the higher mean over all variants."""
    of_kind = [r["accuracy"] for r in records if r["kind"] == kind]
    means = {answer: np.mean([found[answer] for found in of_kind]) for answer in views.ANSWERS}
    return max(means, key=means.get)


def is_frozen(variant):
    return variant.startswith("frozen")


def test_the_presets_follow_from_the_runs_by_the_rule(records):
    for kind in ("single", "many", "pair"):
        variant = chosen(records, kind, lambda name: not is_frozen(name))
        wanted = views._BASE | views.VARIANTS[variant]
        preset = PRESETS["default"][kind]
        assert {name: getattr(preset, name) for name in wanted} == wanted
        assert preset.inference == answer_of(records, kind)
    assert chosen(records, "many", is_frozen).startswith("frozen, all in all")
    instant = PRESETS["instant"]["single"]
    assert (instant.template, instant.centred, instant.inference) == (
        views._EXCLAIMED["template"],
        False,
        "lda",
    )


@pytest.mark.parametrize("kind", views.SENTENCE_VARIANTS)
def test_the_presets_of_sentence_encoders_follow_by_the_rule(records, kind):
    variant = chosen(records, kind, lambda name: name in views.variants_of(kind))
    preset = PRESETS["default"][kind]
    if is_frozen(variant):
        assert preset.steps == preset.epochs == 0
        assert preset.leaves_one_out
        return
    wanted = views._SENTENCE_BASE | views.SENTENCE_VARIANTS[kind][variant]
    assert {name: getattr(preset, name) for name in wanted} == wanted
    assert preset.inference == answer_of(records, kind)


def test_what_is_answered_is_not_learned_and_each_text_counts_once(data):
    train, held_out = views.split("CR", 1)
    assert sorted(train.labels) == ["a"] * 16 + ["b"] * 16
    texts = [*train.examples, *held_out.examples]
    assert len(set(texts)) == len(texts) == 2 * 59


def test_a_run_needs_no_test_set(data, tiny):
    job = {"backbone": str(tiny("bert")), "kind": "single", "variant": "frozen", "dataset": "CR"}
    found = views.one_run({**job, "seed": 1})
    assert set(found["accuracy"]) == set(views.ANSWERS)
    with pytest.raises(CPTuningError):
        few_shot.one_run({**job, "seed": 13, "variant": "untrained"})
