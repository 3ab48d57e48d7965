"""``cptuning add`` killed while it replaces the model: the next command finds a whole one."""

import json
import shutil
import signal
from pathlib import Path

import pytest
from tests.cli.conftest import write_csv
from tests.standstill import start_python

STORED = Path(__file__).parents[1] / "storage" / "format_1" / "cp-tuning"
KILLED = """
import os, signal, sys
from cptuning.__main__ import main

rename, left = os.rename, int(sys.argv.pop(1))


def deadly(*arguments):
    global left
    for step in (lambda: None, lambda: rename(*arguments)):
        step()
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


os.rename = deadly
main()
"""


@pytest.mark.parametrize(("call", "is_new"), [(1, False), (2, True), (3, True), (4, True)])
def test_the_same_command_again_gives_the_right_model(run, tmp_path, call, is_new):
    """Killed before and after the old model goes, and before and after the new one comes."""
    model = shutil.copytree(STORED, tmp_path / "model")
    more = write_csv(tmp_path / "more.csv", ("text", "label"), [("the red train", "travel")])
    process = start_python(KILLED, call, "add", model, more)
    _, stderr = process.communicate()
    assert process.returncode == -signal.SIGKILL, stderr
    assert any(tmp_path.glob(".model.*.unfinished"))
    result = run("add", model, more, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["added"], told["known_already"]) == ((0, 1) if is_new else (1, 0))
    assert told["classes"] == ["bad", "good", "travel"]
    assert told["examples"] == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "more.csv"]


def test_any_command_brings_the_model_back(run, tmp_path):
    model = shutil.copytree(STORED, tmp_path / "model")
    more = write_csv(tmp_path / "more.csv", ("text", "label"), [("the red train", "travel")])
    start_python(KILLED, 2, "add", model, more).communicate()
    assert not model.exists()
    result = run("info", model, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["classes"] == ["bad", "good", "travel"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "more.csv"]
