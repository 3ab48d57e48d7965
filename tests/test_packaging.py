"""The package as it is published: what is in it, and that the wheel alone fits and predicts."""

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MOST_MEGABYTES = 45

FIT = """
import sys
from cptuning import CPTuningClassifier
texts = ["where is my parcel?", "no parcel yet", "my money back", "a refund please"]
clf = CPTuningClassifier(preset="instant").fit(texts, ["delivery"] * 2 + ["refund"] * 2)
print(clf.predict(["has my parcel been sent?"])[0], "torch" in sys.modules)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", place, ROOT], check=True)
    return place


@pytest.mark.slow
def test_the_wheel_alone_fits_and_predicts_in_an_empty_environment(built, tmp_path):
    [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.stat().st_size < MOST_MEGABYTES * 1_000_000
    assert sdist.stat().st_size < MOST_MEGABYTES * 1_000_000
    names = zipfile.ZipFile(wheel).namelist()
    assert "cptuning/py.typed" in names
    assert {name.split("/")[0] for name in names} == {
        "cptuning",
        f"cptuning-{PROJECT['version']}.dist-info",
    }
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    constraints = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([python, "-m", "pip", "install", "-q", *constraints, wheel], check=True)
    found = subprocess.run(
        [python, "-c", FIT], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert found.stdout.split() == ["delivery", "False"]
    listed = subprocess.run(
        [python, "-m", "pip", "list"], capture_output=True, text=True, check=True
    )
    assert not re.search(r"^(torch|transformers|pandas) ", listed.stdout, re.MULTILINE)
    command = tmp_path / "env" / "bin" / "cptuning"
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"cptuning {PROJECT['version']}\n"
    refused = subprocess.run(
        [command, "app"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert refused.returncode == 2
    assert 'pip install "cptuning[' in refused.stderr


def test_the_versions_that_are_promised_are_the_lowest_that_are_installed():
    listed = subprocess.run(
        [sys.executable, ROOT / "packaging" / "lowest.py"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    lowest = dict(line.split("==") for line in listed)
    for requirement in PROJECT["dependencies"]:
        name, bound = requirement.split(">=")
        assert lowest[name] == bound.split(",")[0]
    assert f"torch=={lowest['torch']}" in (ROOT / "constraints.txt").read_text().splitlines()


def test_every_python_that_is_named_is_tested_and_the_other_way_round():
    named = {found[1] for c in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", c))}
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) == named


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda p: p.name)
def test_workflows_run_what_the_makefile_has(path):
    flow = yaml.safe_load(path.read_text("utf-8"))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for job in flow["jobs"].values():
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
                assert target in targets
    # Only who publishes may write, and nobody has a password.
    assert flow["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text("utf-8")


def test_the_changelog_begins_with_the_version_of_the_package():
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heading[1] == PROJECT["version"]
