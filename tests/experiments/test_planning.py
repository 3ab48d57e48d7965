"""What a request asks for: how many runs, which grid, and what tells one run from another."""

from collections import Counter

import pytest

from cptuning.data import PAPER_DATASETS
from cptuning.errors import CPTuningError
from cptuning.experiments.planning import (
    PAPER_GRID,
    SMALL_GRID,
    grid_for,
    left_out,
    load_split,
    plan,
    source_data,
)
from cptuning.experiments.request import Request
from cptuning.experiments.studies import PAPER_METHODS, STUDIES

SMALL = {"name": "small", "weights": "abc", "parameters": 28_000_000}
LARGE = {"name": "large", "weights": "abc", "parameters": 355_000_000}
SENTENCES = {"name": "sentences", "weights": "abc", "parameters": 109_000_000, "pooled": True}


def settings_of(tasks):
    return [c.configuration["settings"] for task in tasks for c in task.candidates]


def test_the_paper_s_grid_is_for_large_backbones_and_small_ones_have_higher_rates():
    assert grid_for(355_000_000) == PAPER_GRID
    assert len(PAPER_GRID.rates) * len(PAPER_GRID.batch_sizes) == 12
    assert PAPER_GRID.rates == (1e-5, 3e-5, 5e-5)
    assert grid_for(27_900_000) == SMALL_GRID
    assert max(SMALL_GRID.rates) == 1e-4


@pytest.mark.parametrize(("backbone", "grid"), [(SMALL, SMALL_GRID), (LARGE, PAPER_GRID)])
def test_a_cell_has_every_point_of_the_grid_once(request_for, backbone, grid):
    (task,) = plan(request_for(fast=False, methods=("pet",)), backbone)
    points = {(s["learning_rate"], s["batch_size"]) for s in settings_of([task])}
    assert points == {(r, n) for r in grid.rates for n in grid.batch_sizes}
    assert len(set(task.cell.keys)) == 12


def test_main_has_the_paper_s_eight_methods_and_two_more_rows(request_for):
    tasks = plan(request_for(methods=(), datasets=("CR", "MR"), seeds=(13, 21)), SMALL)
    rows = [task.cell.row for task in tasks[:10]]
    assert rows == [*PAPER_METHODS, "zero-shot", "warp-random"]
    assert len(tasks) == 10 * 2 * 2


def test_fast_has_two_seeds_and_two_points(request_for):
    tasks = plan(request_for(seeds=(13, 21, 42), fast=True), SMALL)
    assert {task.cell.seed for task in tasks} == {13, 21}
    assert {len(task.candidates) for task in tasks} == {2}


def test_warp_whose_language_model_is_frozen_has_rates_around_its_own(request_for):
    (task,) = plan(request_for(methods=("warp",), fast=False), SMALL)
    assert min(s["learning_rate"] for s in settings_of([task])) >= 1e-3


def test_the_ablation_changes_one_thing_at_a_time(request_for):
    tasks = plan(request_for("ablation", methods=()), SMALL)
    full = settings_of(tasks)[0]
    changed = {
        task.cell.row: {
            name: value for name, value in settings_of([task])[0].items() if value != full[name]
        }
        for task in tasks
    }
    assert changed == {
        "full": {},
        "without MLM": {"contrastive_weight": 1.0},
        "with α, log Σ": {"form": "log_sum"},
        "without α, Σ log": {"relaxation": False},
        "without α, log Σ": {"relaxation": False, "form": "log_sum"},
        "without similarity averaging": {"loss": "sampled-pccl"},
    }


def test_dev_chooses_the_step_by_the_same_rule_for_every_method(request_for):
    for backbone in (SMALL, LARGE):
        for name in set(STUDIES) - {"selection"}:
            tasks = plan(request_for(name, methods=(), steps=None, datasets=("MR", "CR")), backbone)
            assert {s["selection"] for s in settings_of(tasks)} == {"best"}, name


def test_the_study_of_that_rule_changes_nothing_else_and_shares_the_runs_of_main(request_for):
    tasks = plan(request_for("selection", methods=()), SMALL)
    assert len(tasks) == 2 * len(PAPER_METHODS)
    for best, last in zip(tasks[::2], tasks[1::2], strict=True):
        first, second = (settings_of([task])[0] for task in (best, last))
        assert first.pop("selection") == "best"
        assert second.pop("selection") == "one-standard-error"
        assert first == second
        assert best.cell.row.endswith(", best step")
        assert last.cell.row.endswith(", last step")
    main = {key for task in plan(request_for(methods=()), SMALL) for key in task.cell.keys}
    assert all(set(task.cell.keys) <= main for task in tasks[::2])


def test_studies_share_runs_that_are_the_same(request_for):
    main = plan(request_for(methods=("cp-tuning",)), SMALL)
    ablation = plan(request_for("ablation", methods=()), SMALL)
    assert main[0].cell.keys == ablation[0].cell.keys


def test_unbalanced_goes_both_ways_round_in_train_and_dev(request_for, data):
    tasks = plan(request_for("unbalanced", methods=("pet",)), SMALL)
    ways = [dict(task.cell.counts) for task in tasks]
    assert {"negative": 8, "positive": 24} in ways
    assert {"negative": 24, "positive": 8} in ways
    assert {s["batches"] for s in settings_of(tasks)} == {"uniform", "balanced"}
    cell = tasks[0].cell
    train, dev = load_split("CR", 13, cell.counts, data)
    assert train.labels.count("negative") == 8
    assert train.labels.count("positive") == 24
    assert dev.labels.count("negative") == 8
    assert not set(train.examples) & set(dev.examples)


def test_the_prompt_study_gives_both_methods_the_same_five_templates(request_for):
    tasks = plan(request_for("prompts", methods=()), SMALL)
    by_row = {}
    for task in tasks:
        by_row.setdefault(task.cell.row, set()).add(settings_of([task])[0]["template"])
    assert by_row["cp-tuning"] == by_row["pet"]
    assert len(by_row["pet"]) == 5


def test_the_key_is_of_everything_that_decides_the_outcome(request_for):
    def keys(backbone=SMALL, **changes):
        return {k for t in plan(request_for(**changes), backbone) for k in t.cell.keys}

    usual = keys()
    assert keys() == usual
    assert keys(output="elsewhere", device="auto", workers=3) == usual
    assert not keys(steps=2) & usual
    assert not keys(seeds=(21,)) & usual
    assert not keys(datasets=("MR",)) & usual
    assert not keys(backbone=SMALL | {"weights": "other"}) & usual


def test_other_examples_make_another_key(request_for, tmp_path):
    from tests.experiments.conftest import BAD, GOOD, write_dataset

    write_dataset(tmp_path / "other", "CR", {"negative": BAD[::-1], "positive": GOOD})
    mine, other = (
        plan(request_for(data=folder) if folder else request_for(), SMALL)[0].cell.keys
        for folder in (None, tmp_path / "other")
    )
    assert not set(mine) & set(other)


def test_every_study_is_about_the_paper_s_tasks():
    for name, study in STUDIES.items():
        if name not in ("main", "selection", "tsne", "transfer"):
            assert study.datasets == ("SST-2", "MR", "MRPC", "QQP")
    assert STUDIES["main"].datasets == STUDIES["selection"].datasets == PAPER_DATASETS
    assert STUDIES["tsne"].datasets == ("SST-2", "CR", "SUBJ")
    # Another set needs other data: who reproduces the paper need not have them.
    assert [s.name for s in STUDIES.values() if not s.in_all] == ["transfer"]
    assert "transfer" not in {study.name for study in Request("all").studies()}


def test_transfer_leaves_out_the_set_that_it_is_measured_on(request_for, data):
    request = request_for("transfer", datasets=("SST-2", "MR", "CR"), methods=())
    tasks = plan(request, SMALL)
    assert len(tasks) == 3 * 6
    for task in tasks:
        cell = task.cell
        others = tuple(name for name in ("SST-2", "MR", "CR") if name != cell.dataset)
        assert cell.sources == (others if "other tasks" in cell.row else ())
        assert cell.row.startswith(f"{cell.shots} examples")
        train, dev = load_split(cell.dataset, 13, (), data, cell.shots)
        [candidate] = task.candidates
        assert candidate.configuration["train"]["rows"] == len(train.labels)
        assert candidate.configuration.get("sources", {}).get("datasets", []) == list(cell.sources)
        assert not set(train.examples) & set(dev.examples)
    assert len({task.cell.keys for task in tasks}) == len(tasks)
    found = source_data(("SST-2", "CR"), 13, data)
    assert Counter(found.labels) == {
        f"{name}: {label}": 16 for name in ("SST-2", "CR") for label in ("negative", "positive")
    }


def test_transfer_needs_other_data_sets(request_for):
    with pytest.raises(CPTuningError, match="trains on other data sets first: name two at least"):
        plan(request_for("transfer", methods=()), SMALL)
    pairs = request_for("transfer", datasets=("CR", "MRPC"), methods=())
    with pytest.raises(CPTuningError, match="MRPC has pairs of texts, and the others don't"):
        plan(pairs, SMALL)


@pytest.mark.parametrize(
    ("study", "changes", "sentence"),
    [
        ("maine", {}, "There is no study 'maine': use one of main, ablation,"),
        ("main", {"methods": ("gpt",)}, "There is no method 'gpt': use some of"),
        ("ablation", {"methods": ("pet",)}, "The study ablation has none of the methods pet."),
        ("main", {"seeds": ()}, "No seeds are given"),
        ("main", {"workers": 0}, "--workers is 0"),
        ("main", {"precision": "float8"}, "There is no precision 'float8': use one of auto,"),
        ("main", {"datasets": ("GSM8K",)}, "There is no data set 'GSM8K'"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(request_for, study, changes, sentence):
    with pytest.raises(CPTuningError, match=sentence.replace("(", r"\(")):
        plan(request_for(study, **changes), SMALL)


def test_tuning_tries_the_same_values_each_time_and_leaves_the_row_s_own_alone(request_for):
    tasks = plan(request_for("parameters", tune=True), SMALL)
    again = plan(request_for("parameters", tune=True), SMALL)
    assert [task.cell.keys for task in tasks] == [task.cell.keys for task in again]
    margins = {s["margin"] for s in settings_of(t for t in tasks if t.cell.row == "m = 0.2")}
    assert margins == {0.2}
    assert len({s["xi"] for s in settings_of(tasks[:1])}) > 10


def test_no_model_without_training_takes_part(request_for):
    for name in STUDIES:
        tasks = plan(request_for(name, methods=(), datasets=("MR", "CR")), SMALL)
        assert not any(s.get("instant_first") for s in settings_of(tasks)), name


def test_a_sentence_encoder_has_the_rows_that_need_no_prompt(request_for):
    request = request_for(methods=())
    tasks = plan(request, SENTENCES)
    assert [task.cell.row for task in tasks] == ["fine-tuning", "cp-tuning"]
    assert left_out(request, SENTENCES) == [
        *("pet", "lm-bff-t", "lm-bff-l", "lm-bff-tl", "p-tuning", "warp"),
        *("zero-shot", "warp-random"),
    ]
    assert left_out(request, SMALL) == []
    ablation = request_for("ablation", methods=())
    assert left_out(ablation, SENTENCES) == ["without MLM"]
    assert len(plan(ablation, SENTENCES)) == 5


def test_a_sentence_encoder_has_the_settings_of_one_whatever_its_size(request_for):
    own, tuned = (
        settings_of(plan(request_for(methods=(name,)), SENTENCES))[0]
        for name in ("cp-tuning", "fine-tuning")
    )
    assert (own["template"], own["contrastive_weight"], own["tau_n"]) == ("{a}", 1.0, 1 / 8)
    assert tuned["template"] == "[CLS] {a}"
    assert grid_for(SENTENCES["parameters"], pooled=True) == SMALL_GRID


def test_a_sentence_encoder_is_trained_on_pairs_though_its_preset_is_not(request_for):
    asked = {"methods": ("cp-tuning",), "datasets": ("MRPC",)}
    tasks = plan(request_for(**asked, steps=None), SENTENCES)
    for settings in settings_of(tasks):
        assert (settings["steps"], settings["epochs"]) == (20, 10)
    short = plan(request_for(**asked, steps=5), SENTENCES)
    assert {settings["steps"] for settings in settings_of(short)} == {5}


def test_what_needs_a_prompt_is_refused_where_there_is_none(request_for):
    with pytest.raises(CPTuningError, match=r"pet reads a \[MASK\], and sentences is read without"):
        plan(request_for(methods=("cp-tuning", "pet")), SENTENCES)
    with pytest.raises(CPTuningError, match="The study prompts is about prompts, and sentences"):
        plan(request_for("prompts", methods=()), SENTENCES)
