"""explain, add, info, export, methods, backbones: what each shows and writes."""

import json
import shutil

import pytest
from tests.cli.conftest import GOOD, write_csv

from cptuning.backbone import CATALOGUE
from cptuning.commands.explain import print_explanations
from cptuning.data import Examples
from cptuning.inference import Evidence, Explanations, Reasons
from cptuning.registry import load


@pytest.fixture
def own(model, tmp_path):
    """A copy of the model that a test may change."""
    return shutil.copytree(model, tmp_path / "own-model")


class TestExplain:
    def test_a_text_gets_its_label_and_the_nearest_examples(self, run, model):
        result = run("explain", model, GOOD[0], "-k", "2")
        text, answer, first, second = result.stdout.splitlines()
        assert text == GOOD[0]
        assert answer.startswith("  good (")
        assert first.split() == ["1.00", "good", *GOOD[0].split()]
        assert second.strip()

    def test_json_holds_all_of_it(self, run, model):
        answer = json.loads(run("explain", model, GOOD[0], "--json").stdout)
        assert answer["prediction"] == "good"
        assert answer["neighbours"][0] == {
            "text": GOOD[0],
            "label": "good",
            "similarity": pytest.approx(1, abs=1e-4),
        }
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-4)
        assert [example["label"] for example in answer["neighbours"]] == ["good"] * 3
        assert answer["against"] is None

    def test_a_file_gives_one_object_a_line(self, run, model, films):
        lines = run("explain", model, "--file", films, "--json", "-k", "1").stdout.splitlines()
        assert len(lines) == 8
        assert all(json.loads(line)["neighbours"] for line in lines)

    def test_a_pair_needs_both_texts(self, run, pair_model):
        result = run("explain", pair_model, "is it red?", "--text-b", "it is red.", "-k", "1")
        assert result.stdout.splitlines()[0] == "is it red? | it is red."

    def test_markup_in_a_text_is_text(self, run, model):
        assert "[bold]x[/bold] :smile: [/]" in run(
            "explain", model, "[bold]x[/bold] :smile: [/]"
        ).stdout  # fmt: skip

    def test_what_speaks_against_an_answer_is_shown_apart(self, capsys):
        near = Evidence("refund my parcel", "delivery", 0.8)
        nearer = Evidence("refund my parcel", "refund", 0.912)
        print_explanations(
            Explanations(
                [Reasons([near], against=nearer), Reasons([near])],
                Examples(("my parcel", "my parcel")),
                ["delivery", "unknown"],
                [0.75, None],
            )
        )
        assert capsys.readouterr().out.splitlines() == [
            "my parcel",
            "  delivery (75.0 %), because it is similar to",
            "     0.80  delivery  refund my parcel",
            "  although this is even nearer",
            "     0.91  refund    refund my parcel",
            "",
            "my parcel",
            "  unknown; the nearest examples are",
            "     0.80  delivery  refund my parcel",
        ]


class TestAdd:
    def test_a_new_class_is_known_at_once(self, run, own, tmp_path):
        rows = [("where is my parcel?", "delivery"), ("my parcel is late", "delivery")]
        more = write_csv(tmp_path / "more.csv", ("text", "label"), rows)
        result = run("add", own, more)
        assert result.stdout.splitlines() == [
            "2 new examples added.",
            f"{own} now knows 10 examples of 3 classes, of which new: delivery.",
        ]
        assert load(own).predict(["where is the parcel?"]).tolist() == ["delivery"]

    def test_adding_a_file_twice_changes_nothing(self, run, own, tmp_path):
        more = write_csv(tmp_path / "more.csv", ("text", "label"), [("so so", "fair")] * 2)
        assert "1 new example added, 1 known already." in run("add", own, more).stdout
        before = (own / "support.safetensors").read_bytes()
        answer = json.loads(run("add", own, more, "--json").stdout)
        assert (answer["added"], answer["known_already"], answer["new_classes"]) == (0, 2, [])
        assert (own / "support.safetensors").read_bytes() == before

    def test_with_an_output_the_old_model_stays(self, run, own, tmp_path):
        more = write_csv(tmp_path / "more.csv", ("text", "label"), [("so so", "fair")])
        assert run("add", own, more, "--output", tmp_path / "new").exit_code == 0
        assert "fair" not in load(own).classes_
        assert "fair" in load(tmp_path / "new").classes_

    def test_a_text_known_under_another_label_is_warned_of(self, run, own, tmp_path):
        more = write_csv(tmp_path / "more.csv", ("text", "label"), [(GOOD[0], "bad")])
        assert "warning: 1 of the texts are known to the model under another" in run(
            "add", own, more
        ).stderr  # fmt: skip


class TestInfo:
    def test_a_table_for_people(self, run, model):
        stdout = run("info", model).stdout
        assert "classes               bad, good" in stdout
        assert "trained on            bad 4, good 4" in stdout
        assert "held-out accuracy     not measured" in stdout

    def test_json_for_programs(self, run, model):
        facts = json.loads(run("info", model, "--json").stdout)
        assert facts["classes"] == ["bad", "good"]
        assert facts["kind"] == "torch"
        assert facts["bytes"] > 1_000_000


def test_an_exported_model_answers_the_same(run, pair_model, pairs, tmp_path):
    result = run("export", pair_model, "--output", tmp_path / "exported")
    assert result.exit_code == 0, result.output
    assert "without torch" in result.stdout
    assert json.loads(run("info", tmp_path / "exported", "--json").stdout)["kind"] == "onnx"
    before, after = (
        [line.rsplit(",", 1)[0] for line in run("predict", m, pairs).stdout.splitlines()]
        for m in (pair_model, tmp_path / "exported")
    )
    assert before == after


def test_an_export_does_not_take_its_models_place(run, pair_model):
    before = sorted(path.name for path in pair_model.rglob("*"))
    result = run("export", pair_model, "--output", pair_model)
    assert result.exit_code == 2
    assert "choose another --output" in result.stderr
    assert sorted(path.name for path in pair_model.rglob("*")) == before


def test_an_export_lies_beside_its_model_unless_told_otherwise(run, pair_model, pairs, tmp_path):
    original = shutil.copytree(pair_model, tmp_path / "pairs")
    has_integers = {}
    for words, name in (("--to", "onnx"), "pairs-onnx"), (("--int8",), "pairs-int8"):
        result = run("export", original, *words)
        assert result.exit_code == 0, result.output
        assert str(tmp_path / name) in result.stdout.replace("\n", "")
        assert run("predict", tmp_path / name, pairs).exit_code == 0
        graph = (tmp_path / name / "encoder.onnx").read_bytes()
        has_integers[name] = b"MatMulIntegerToFloat" in graph
    assert has_integers == {"pairs-onnx": False, "pairs-int8": True}


def test_an_8_bit_export_can_go_without_its_second_look(run, pair_model, pairs, tmp_path):
    result = run("export", pair_model, "--int8", "--no-second-look", "--output", tmp_path / "small")
    assert result.exit_code == 0, result.output
    assert not (tmp_path / "small" / "exact.onnx").exists()
    assert run("predict", tmp_path / "small", pairs).exit_code == 0
    assert run("export", pair_model, "--int8", "--output", tmp_path / "whole").exit_code == 0
    assert (tmp_path / "whole" / "exact.onnx").exists()
    told = [json.loads(run("info", tmp_path / n, "--json").stdout) for n in ("small", "whole")]
    assert told[0]["clear_lead"] is None
    assert told[1]["clear_lead"] > 0
    for name, looks_again in (("small", False), ("whole", True)):
        assert ("looks again at" in run("info", tmp_path / name).stdout) is looks_again


def test_only_8_bits_have_a_second_look_to_go_without(run, pair_model, tmp_path):
    result = run("export", pair_model, "--no-second-look", "--output", tmp_path / "none")
    assert result.exit_code == 2
    assert "--no-second-look needs --int8" in result.stderr
    assert not (tmp_path / "none").exists()


def test_methods_are_listed(run):
    assert run("methods").stdout.startswith("cp-tuning")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache of the hub with the weights of "small" and all that belongs to "paper"."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, files in (("small", ["model.safetensors"]), ("paper", CATALOGUE["paper"].files)):
        row = CATALOGUE[name]
        folder = tmp_path / f"models--{row.hub_id.replace('/', '--')}"
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text(row.revision)
        for file in files:
            place = folder / "snapshots" / row.revision / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()


def test_backbones_are_listed_with_what_is_on_this_machine(run, cache):
    rows = {row["name"]: row for row in json.loads(run("backbones", "--json").stdout)}
    assert list(rows) == list(CATALOGUE)
    assert [name for name, row in rows.items() if row["here"]] == ["embedded", "paper"]
    assert rows["small"] == {
        "name": "small",
        "hub_id": "thenlper/gte-small",
        "revision": CATALOGUE["small"].revision,
        "megabytes": 67,
        "here": False,
        "languages": "English",
        "licence": "MIT",
        "use": CATALOGUE["small"].use,
    }
    lines = run("backbones").stdout.splitlines()
    assert " ".join(lines[1].split()) == "embedded in the package 28 MB yes own terms"
    assert lines[2].split() == ["small", "thenlper/gte-small", "67", "MB", "no", "MIT"]
    assert lines[5].split() == ["paper", "FacebookAI/roberta-large", "1423", "MB", "yes", "MIT"]


@pytest.mark.parametrize("command", ["fit", "learning-curve", "app", "reproduce"])
def test_every_command_with_a_backbone_names_them_in_its_help(run, command):
    words = run(command, "--help").stdout.replace("│", " ").split()
    assert ", ".join(CATALOGUE) in " ".join(words)


def test_a_download_is_announced_and_offline_one_sentence_says_what_to_do(
    run, cache, films, tmp_path
):
    result = run("fit", films, "--output", tmp_path / "model", "--backbone", "small")
    assert result.exit_code == 2
    *_, notice, error = result.stderr.splitlines()
    assert notice == "Downloading the backbone thenlper/gte-small (67 MB) …"
    assert error.startswith("error: The backbone 'small' (thenlper/gte-small, 67 MB) is not in")
