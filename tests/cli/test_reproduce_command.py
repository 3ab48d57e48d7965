"""cptuning reproduce and compare, as a user meets them."""

import json
from pathlib import Path

import pytest
from tests.experiments.conftest import BAD, GOOD, write_dataset
from tests.tiny import save_sentence_encoder
from typer.main import get_command

from cptuning.cli import app
from cptuning.experiments.__main__ import make_parser
from cptuning.experiments.request import Request, parse_request
from cptuning.experiments.studies import STUDIES


@pytest.fixture
def reproduce(run, tiny, tmp_path):
    write_dataset(tmp_path / "data", "CR", {"negative": BAD, "positive": GOOD})

    def command(study, *more, output="results"):
        words = ["--data", tmp_path / "data", "--backbone", tiny("bert"), "--datasets", "CR"]
        words += ["--steps", "1", "--fast", "--device", "cpu", "--output", tmp_path / output]
        return run("reproduce", study, *words, *more)

    return command


def test_a_table_beside_the_paper_s_then_the_same_from_the_records(reproduce, run, tmp_path):
    words = ("--methods", "pet,cp-tuning", "--seeds", "13,21")
    first = reproduce("main", *words)
    assert first.exit_code == 0, first.output
    assert "| majority | 50.0 | 50.0 |  |" in first.stdout
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


def test_a_sentence_encoder_leaves_out_what_needs_a_prompt(reproduce, tmp_path):
    backbone = save_sentence_encoder(tmp_path / "sentences", dense=[(8, "Tanh")])
    words = ("--backbone", backbone, "--seeds", "13", "--output")
    result = reproduce("main", *words, tmp_path / "main")
    assert result.exit_code == 0, result.output
    assert "sentences is read without a prompt" in result.stderr
    assert "left out are pet, lm-bff-t, " in result.stderr
    rows = [line.split("|")[1].strip() for line in result.stdout.splitlines() if "|" in line]
    assert {"Fine-tuning", "CP-Tuning"} <= set(rows)
    assert "PET" not in rows
    refused = reproduce("main", *words, tmp_path / "pet", "--methods", "pet")
    assert refused.exit_code == 2
    assert "pet reads a [MASK], and sentences is read without a prompt" in refused.stderr


def test_the_embedded_backbone_is_prompted_though_it_has_a_sentence_view(reproduce):
    words = ("--backbone", "embedded", "--methods", "pet,cp-tuning", "--seeds", "13", "--dry-run")
    result = reproduce("main", *words)
    assert result.exit_code == 0, result.output
    assert "4 runs, 4 of them still to do" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("maine",), "error: There is no study 'maine': use one of main,"),
        (
            ("main", "--seeds", "x"),
            "error: --seeds is 'x': give whole numbers from 0 to 4294967295, such as 13,21.",
        ),
        (("main", "--steps", "few"), "error: --steps is 'few': give a whole number."),
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


def test_both_command_lines_have_the_same_options_with_the_same_defaults():
    typed = {
        parameter.name: (parameter.opts[0], parameter.default, parameter.required)
        for parameter in get_command(app).commands["reproduce"].params
    }
    plain = {
        action.dest: (action.option_strings or [action.dest])[0]
        for action in make_parser()._actions
    }
    defaults = vars(make_parser().parse_args(["main"])) | {"study": None}
    del plain["help"]
    assert typed == {name: (flag, defaults[name], name == "study") for name, flag in plain.items()}
    assert parse_request(vars(make_parser().parse_args(["main"]))) == Request("main")


def test_a_request_is_read_from_every_option(monkeypatch):
    words = "tsne --output o --backbone b --datasets MR,CR --seeds 1,2 --methods pet --steps 3"
    words += " --device cpu --precision float32 --workers 4 --runner ray --publish p --data d"
    words += " --tune --fast --dry-run --report-only"
    assert parse_request(vars(make_parser().parse_args(words.split()))) == Request(
        "tsne",
        output=Path("o"),
        backbone="b",
        datasets=("MR", "CR"),
        seeds=(1, 2),
        methods=("pet",),
        steps=3,
        device="cpu",
        precision="float32",
        workers=4,
        runner="ray",
        publish=Path("p"),
        data=Path("d"),
        tune=True,
        fast=True,
        dry_run=True,
        report_only=True,
    )


def test_the_help_of_both_lists_every_study(run):
    for text in (run("reproduce", "--help").stdout, make_parser().format_help()):
        words = text.replace(",", " ").replace(";", " ").split()
        assert set(STUDIES) <= set(words)


def test_compare_needs_results(run, tmp_path):
    result = run("compare", tmp_path, tmp_path)
    assert result.exit_code == 2
    assert "holds no results: name a folder that `cptuning reproduce` wrote." in result.stderr
