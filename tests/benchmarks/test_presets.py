"""The table by which the default preset is chosen."""

import json
from pathlib import Path

from benchmarks.presets import DATASETS, ahead, more_than, prompts_of, table, variants_of
from cptuning.methods.settings import PRESETS

FOLDER = Path(__file__).parents[2]
DOCUMENTED = (FOLDER / "docs/presets.md").read_text("utf-8")


def shipped(name):
    return [json.loads(line) for line in (FOLDER / "benchmarks" / name).read_text().splitlines()]


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
    default = [run("default", 0.80, seed=13), run("default", 0.90, seed=21)]
    other = [run("other", 0.81, seed=13), run("other", 0.93, seed=21), run("other", 0.2, seed=42)]
    assert more_than(default, other) == "+2.00 ± 1.00"


def test_draws_of_a_split_count_as_one():
    default = [run("default", 0.80, seed=13), run("default", 0.90, seed=21)]
    other = [run("other", accuracy, seed=13) for accuracy in (0.80, 0.82)]
    other += [run("other", accuracy, seed=21) for accuracy in (0.91, 0.95)]
    assert more_than(default, other) == "+2.00 ± 1.00"


def test_one_run_has_no_error():
    assert more_than([run("default", 0.8)], [run("other", 0.9)]) == "-"


def test_the_table_has_the_best_first_and_only_what_has_all_data_sets():
    records = [run("default", 0.8, name) for name in DATASETS["single"]]
    records += [run("40 steps", 0.9, name) for name in DATASETS["single"]]
    records += [run("80 steps", 0.99, "MR")]
    rows = table(records, "single").splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| 40 steps", "| default"]
    assert "| 90.0 | +10.00 ± 0.00 | 0.500 |" in rows[0]


def test_the_shipped_runs_are_of_every_variant_and_make_the_documented_tables():
    for kind in DATASETS:
        made = table(shipped("presets.jsonl"), kind)
        assert len(made.splitlines()) == 2 + len(variants_of(kind))
        assert made in DOCUMENTED


def test_the_shipped_confirmation_is_of_other_seeds_and_makes_the_documented_table():
    records = shipped("presets_again.jsonl")
    assert {record["draw"] for record in records} == {1, 2, 3, 4}
    assert table(records, "single") in DOCUMENTED


def test_the_prompts_of_the_rule_are_all_different_and_the_preset_s_is_one_of_them():
    for kind in DATASETS:
        prompts = prompts_of(kind)
        assert len(prompts) == len(set(prompts)) == 36
        assert PRESETS["default"][kind].template in prompts
        assert PRESETS["paper"][kind].template in prompts


def test_ahead_is_what_is_better_by_two_standard_errors():
    def runs(variant, *accuracies):
        return [run(variant, a, seed=seed) for seed, a in enumerate(accuracies)]

    records = runs("default", 0.80, 0.80, 0.80)
    records += runs("surely better", 0.82, 0.83, 0.84)
    records += runs("perhaps better", 0.80, 0.80, 0.90)
    records += runs("worse", 0.70, 0.71, 0.72)
    assert ahead(records, "single") == ["surely better"]
    assert ahead(records, "pair") == []


def test_the_shipped_runs_of_prompts_make_the_documented_tables_and_none_is_ahead():
    records = shipped("prompts.jsonl")
    for kind in DATASETS:
        made = table(records, kind)
        assert len(made.splitlines()) == 2 + 1 + 36
        assert made in DOCUMENTED
        assert ahead(records, kind) == []
