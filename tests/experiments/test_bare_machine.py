"""A machine that only trains: no typer, rich or matplotlib."""

import subprocess
import sys

from tests.experiments.conftest import keys_of

BARE = """
import runpy
from importlib.machinery import PathFinder

ABSENT = ("typer", "rich", "matplotlib", "onnxruntime", "accelerate", "pandas")
find = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in ABSENT else find(name, path, target)

PathFinder.find_spec = staticmethod(find_spec)
runpy.run_module("cptuning.experiments", run_name="__main__")
"""


def test_the_runs_need_neither_the_command_line_nor_pictures(request_for):
    request = request_for()
    words = ["main", "--output", request.output, "--backbone", request.backbone]
    words += ["--data", request.data, "--datasets", "CR", "--seeds", "13", "--steps", "1"]
    words += ["--methods", "pet,cp-tuning", "--fast", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-c", BARE, *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(keys_of(request.output)) == 4
    assert len(keys_of(request.output, "tests")) == 2
    assert "The report needs matplotlib" in done.stderr


def test_the_version_is_known_where_the_sources_are_not_installed(monkeypatch):
    import cptuning
    from cptuning.storage import schema

    def version(package):
        if package == "cptuning":
            raise schema.PackageNotFoundError
        return "1.0"

    monkeypatch.setattr(schema, "version", version)
    assert schema.versions()["cptuning"] == cptuning.__version__
