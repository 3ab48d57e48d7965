"""The examples: every script and every notebook runs, and says what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SECONDS = 300


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """This checkout's package, also in the processes that are started."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), *filter(None, known)]))


SAID = {
    "checking_data": ["Labels that are probably wrong", "X[5] and X[96]"],
    "first_steps": ["['delivery']", "because it is similar to", "['account']"],
    "pairs_of_texts": ["accuracy on new pairs"],
    "several_labels": ["the music is wonderful: music", "a film of two hours: "],
    "training": ["instant: held-out accuracy", "trained: on new messages"],
}


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_a_script(script, tmp_path):
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    for piece in SAID[script.stem]:
        assert piece in done.stdout
    assert list(tmp_path.iterdir()) == []


SHOWN = {
    "customer_messages": ["held-out", "because it is similar to", "library_name: "],
    "first_steps": ["['delivery', 'refund']", "Fitted in", "<table>"],
    "reproduce_a_table": ["runs", "| CP-Tuning |", "the paper"],
}


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook(notebook, tmp_path, monkeypatch):
    if notebook.stem == "reproduce_a_table":  # It makes a small set of its own: two thousand
        monkeypatch.delenv("CPTUNING_DATA", raising=False)  # texts of CR would take a minute.
    read = nbformat.read(notebook, as_version=4)
    assert not [cell for cell in read.cells if cell.get("outputs")]
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(read, timeout=SECONDS, kernel_name="python3", resources=resources)
    told = str([cell.get("outputs") for cell in client.execute().cells])
    for piece in SHOWN[notebook.stem]:
        assert piece in told
    assert "Traceback" not in told


def test_there_is_a_line_on_each_of_them():
    page = (ROOT / "docs" / "examples.md").read_text("utf-8")
    for path in EXAMPLES.iterdir():
        if path.suffix in (".py", ".ipynb"):
            assert f"../examples/{path.name}" in page
