"""The table by which the default preset is chosen."""

from pathlib import Path

import pytest

from benchmarks.presets import (
    COMBINED,
    DATASETS,
    FINAL,
    FINAL_DRAWS,
    LISTED,
    PROMPTS,
    SWEEP,
    ahead,
    best,
    finalists,
    more_than,
    prompts_of,
    read,
    settings_of,
    table,
    variants_of,
)
from cptuning.methods.cp_tuning_settings import PRESETS

FOLDER = Path(__file__).parents[2]
DOCUMENTED = (FOLDER / "docs/presets.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    """The files of runs are named from the project's folder."""
    monkeypatch.chdir(FOLDER)


def run(variant, accuracy, dataset="MR", seed=13):
    """A run whose accuracy was lower before the last step."""
    return {
        "kind": "single",
        "variant": variant,
        "dataset": dataset,
        "seed": seed,
        "accuracy": {"0": 0.1, "20": accuracy},
        "log_loss": {"0": 1.0, "20": 0.5},
    }


def test_differences_are_those_of_runs_on_the_same_split():
    start = [run("start", 0.80, seed=13), run("start", 0.90, seed=21)]
    other = [run("other", 0.81, seed=13), run("other", 0.93, seed=21), run("other", 0.2, seed=42)]
    assert more_than(start, other) == "+2.00 ± 1.00"


def test_draws_of_a_split_count_as_one():
    start = [run("start", 0.80, seed=13), run("start", 0.90, seed=21)]
    other = [run("other", accuracy, seed=13) for accuracy in (0.80, 0.82)]
    other += [run("other", accuracy, seed=21) for accuracy in (0.91, 0.95)]
    assert more_than(start, other) == "+2.00 ± 1.00"


def test_one_run_has_no_error():
    assert more_than([run("start", 0.8)], [run("other", 0.9)]) == "-"


def test_the_table_has_the_best_first_and_only_what_has_all_data_sets():
    records = [run("start", 0.8, name) for name in DATASETS["single"]]
    records += [run("40 steps", 0.9, name) for name in DATASETS["single"]]
    records += [run("80 steps", 0.99, "MR")]
    rows = table(records, "single").splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| 40 steps", "| start"]
    assert "| 90.0 | +10.00 ± 0.00 | 0.500 |" in rows[0]


def test_the_shipped_runs_are_of_every_variant_and_make_the_documented_tables():
    for kind in LISTED:
        made = table(read(SWEEP), kind)
        assert len(made.splitlines()) == 2 + len(variants_of(kind))
        assert made in DOCUMENTED


def test_the_prompts_of_the_rule_are_all_different_and_the_preset_s_is_one_of_them():
    for kind in LISTED:
        prompts = prompts_of(kind)
        assert len(prompts) == len(set(prompts)) == 36
        assert PRESETS["default"][kind].template in prompts
        assert PRESETS["paper"][kind].template in prompts


def test_the_shipped_runs_of_prompts_make_the_documented_tables():
    for kind in LISTED:
        made = table(read(PROMPTS), kind)
        assert len(made.splitlines()) == 2 + 1 + 36
        assert made in DOCUMENTED


def test_ahead_is_what_is_better_than_the_start():
    def runs(variant, *accuracies):
        return [run(variant, a, seed=seed) for seed, a in enumerate(accuracies)]

    records = runs("start", 0.80, 0.80, 0.80)
    records += runs("surely better", 0.82, 0.83, 0.84)
    records += runs("perhaps better", 0.80, 0.80, 0.90)
    records += runs("the same", 0.80, 0.80, 0.80)
    records += runs("worse", 0.70, 0.71, 0.72)
    assert ahead(records, "single") == ["surely better", "perhaps better"]
    assert ahead(records, "pair") == []


@pytest.mark.parametrize("kind", list(DATASETS))
def test_the_finalists_are_all_that_was_ahead_with_seeds_that_had_no_part_in_that(kind):
    wanted = finalists(kind)
    listed = "single" if kind == "many" else kind
    found = ahead(read(SWEEP), listed) + ahead(read(PROMPTS), listed)
    assert {*found, *COMBINED[listed]} < set(wanted)
    records = [record for record in read(FINAL) if record["kind"] == kind]
    assert {record["variant"] for record in records} == set(wanted)
    assert len(records) == len(wanted) * len(DATASETS[kind]) * 5 * len(FINAL_DRAWS[kind])
    assert {record["draw"] for record in records} == set(FINAL_DRAWS[kind])
    assert not {r["draw"] for r in read(SWEEP) + read(PROMPTS)} & set(FINAL_DRAWS[kind])
    assert table(records, kind) in DOCUMENTED


@pytest.mark.parametrize("kind", list(DATASETS))
def test_the_default_preset_is_the_finalist_that_measured_best(kind):
    chosen = settings_of(kind, best(read(FINAL), kind))
    preset = PRESETS["default"][kind]
    assert chosen == {name: getattr(preset, name) for name in chosen}


def test_the_best_is_the_first_row_with_the_method_s_loss():
    accuracies = {"start": 0.8, "tau_n 1/4": 0.82, "supcon": 0.95}
    records = [run(v, a, name) for v, a in accuracies.items() for name in DATASETS["single"]]
    assert best(records, "single") == "tau_n 1/4"
