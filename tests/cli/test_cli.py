"""The command as a whole: help, version, errors, pipes, full disks."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import start, write_csv

import cptuning
from cptuning.__main__ import main

COMMANDS = (
    "fit predict evaluate explain add info export learning-curve demo methods backbones".split()  # noqa: SIM905
)


def test_help_names_every_command_and_imports_nothing_heavy():
    code = (
        "import sys; from cptuning.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in found.stdout
    for command in COMMANDS:
        assert f" {command} " in found.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_the_command_is_a_module_too():
    words = [sys.executable, "-m", "cptuning", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"cptuning {cptuning.__version__}\n"


def test_a_closed_standard_output_is_told_in_one_sentence(model, films):
    words = [sys.executable, "-m", "cptuning", "predict", str(model), str(films)]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: Standard output is closed: name a file with --output.\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_no_command(pair_model, pairs, tmp_path, closed):
    """A file that is opened must not take the place of standard output."""
    out = tmp_path / "out.csv"
    for words in (("info", pair_model), ("predict", pair_model, pairs, "--output", out)):
        command = [sys.executable, "-m", "cptuning", *map(str, words)]
        done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command], capture_output=True)
        assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fit", "{films}", "--output", "{long}"), "{long} can't be written: File name too long."),
        (("info", "{long}"), "{long} can't be read: File name too long."),
        (("evaluate", "{model}", "{films}", "--report", "{long}"), "File name too long."),
        (("predict", "{model}", "{films}", "--output", "{long}.csv"), "File name too long."),
        (("predict", "{model}", "{long}.csv"), "File name too long."),
        (("export", "{model}", "--output", "{long}"), "File name too long."),
    ],
)
def test_a_name_that_is_too_long_is_one_sentence(run, films, pair_model, tmp_path, words, sentence):
    places = {"films": films, "model": pair_model, "long": tmp_path / ("x" * 300)}
    result = run(*(word.format(**places) for word in words))
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith(sentence.format(**places))
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_one_sentence(run, monkeypatch):
    def needs_more(folder):
        raise MemoryError

    monkeypatch.setattr("cptuning.storage.find_model", needs_more)
    result = run("info", "somewhere")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: There is not enough memory: give fewer or shorter texts at once.\n",
    )


def test_the_version_is_that_of_the_package(run):
    assert run("--version").stdout.strip() == f"cptuning {cptuning.__version__}"


@pytest.mark.parametrize(
    "words", [("fit",), ("no-such-command",), ("predict", "m", "f", "--neighbours", "many")]
)
def test_a_misspelt_command_line_is_a_users_mistake(run, words):
    assert run(*words).exit_code == 2


def test_a_bug_keeps_its_traceback(run, monkeypatch):
    def broken(folder):
        raise RuntimeError("a bug")

    monkeypatch.setattr("cptuning.storage.find_model", broken)
    result = run("info", "somewhere")
    assert isinstance(result.exception, RuntimeError)
    assert result.exit_code == 1


def test_a_package_that_only_training_needs_is_named(run, monkeypatch):
    def without_torch(folder):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("cptuning.storage.find_model", without_torch)
    result = run("info", "somewhere")
    assert result.exit_code == 2
    assert result.stderr == 'error: This needs torch: pip install "cptuning[train]".\n'


def test_ctrl_c_is_one_word_and_130(run, monkeypatch):
    def interrupted(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("cptuning.storage.find_model", interrupted)
    result = run("info", "somewhere")
    assert result.exit_code == 130
    assert result.stderr == "Stopped.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(run, model, films, tmp_path):
    full = tmp_path / "out.csv"
    full.symlink_to("/dev/full")
    result = run("predict", model, films, "--output", full)
    assert result.exit_code == 2
    assert result.stderr == (
        "error: There is no space left on the disk: free some and try again.\n"
    )


def test_a_reader_who_has_seen_enough_is_no_error(pair_model, pairs):
    many = pairs.with_name("many.csv")
    lines = pairs.read_text().splitlines()
    many.write_text("\n".join([lines[0], *lines[1:] * 1500]))
    process = start("predict", pair_model, many, "--neighbours", "3")
    assert process.stdout.readline().startswith("text_a,text_b,label,prediction")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141


def test_warnings_of_the_library_are_shown_once_on_one_line(run, tmp_path, tiny):
    lonely = write_csv(
        tmp_path / "lonely.csv",
        ("text", "label"),
        [("one", "a"), ("two", "a"), ("three", "b")],
    )
    result = run(
        "fit", lonely, "--output", tmp_path / "m", "--backbone", tiny("bert"),
        "--set", "steps=1", "--validation", "none",
    )  # fmt: skip
    assert result.exit_code == 0
    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        "warning: The class 'b' has a single example: it can be predicted, "
        "but there is no pair to learn it from."
    ]


def test_other_packages_stay_silent(model, films):
    process = start("evaluate", model, films, "--json")
    stdout, stderr = process.communicate()
    assert stdout.startswith("{")
    # What is said is ours: the texts are those that the model was trained on.
    assert all(line.startswith("warning: 8 of the 8 texts") for line in stderr.splitlines())


def test_the_command_is_the_one_that_the_package_installs():
    from importlib.metadata import entry_points

    [script] = entry_points(group="console_scripts", name="cptuning")
    assert script.load() is main


def test_ctrl_c_while_it_starts_shows_no_traceback():
    code = """
import sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "cptuning.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from cptuning.__main__ import main
main()
"""
    stopped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (130, "", "")
