"""cptuning reproduce and compare, as a user meets them."""

import json

import pytest
from tests.experiments.conftest import BAD, GOOD, write_dataset


@pytest.fixture
def reproduce(run, tiny, tmp_path):
    write_dataset(tmp_path / "data", "CR", {"negative": BAD, "positive": GOOD})

    def command(what, *more, output="results"):
        words = ["--data", tmp_path / "data", "--backbone", tiny("bert"), "--datasets", "CR"]
        words += ["--steps", "1", "--fast", "--device", "cpu", "--output", tmp_path / output]
        return run("reproduce", what, *words, *more)

    return command


def test_a_table_beside_the_paper_s_then_the_same_from_the_records(reproduce, run, tmp_path):
    words = ("--methods", "pet,cp-tuning", "--seeds", "13,21")
    first = reproduce("main", *words)
    assert first.exit_code == 0, first.output
    assert "| majority | 50.0 | 50.0 |" in first.stdout
    assert "| *the paper* | 91.57 | 91.57 |" in first.stdout
    assert "not the paper's RoBERTa-large" in first.stdout
    assert "This is the fast version" in first.stderr
    assert "main.html" in first.stderr
    assert reproduce("main", *words).stdout == first.stdout
    reproduce("main", *words, "--steps", "2", output="other")
    compared = run("compare", tmp_path / "results", tmp_path / "other", "--json")
    assert {one["row"] for one in json.loads(compared.stdout)} == {"pet", "cp-tuning"}
    table = run("compare", tmp_path / "results", tmp_path / "other")
    assert "single-tailed paired t-tests" in table.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("maine",), "error: There is no study 'maine': use one of main,"),
        (("main", "--seeds", "x"), "error: --seeds is 'x': give whole numbers, such as 13,21."),
        (("main", "--methods", "gpt"), "error: There is no method 'gpt'"),
        (("main", "--runner", "slurm"), "error: There is no runner 'slurm'"),
        (("main", "--backbone", "no-such"), "error: The backbone 'no-such' is neither"),
        (("ablation", "--methods", "pet"), "error: The study ablation has none of the methods pet"),
    ],
)
def test_a_mistake_is_a_sentence(reproduce, words, sentence):
    result = reproduce(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == 1


def test_compare_needs_results(run, tmp_path):
    result = run("compare", tmp_path, tmp_path)
    assert result.exit_code == 2
    assert "holds no results: name a folder that `cptuning reproduce` wrote." in result.stderr
