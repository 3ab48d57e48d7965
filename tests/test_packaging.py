"""The package as it is published: what is in it, and that the wheel alone fits and predicts."""

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MOST_MEGABYTES = 45

INSTANT = """
import sys
from cptuning import CPTuningClassifier
texts = ["where is my parcel?", "no parcel yet", "my money back", "a refund please"]
clf = CPTuningClassifier(preset="instant").fit(texts, ["delivery"] * 2 + ["refund"] * 2)
clf.save("model")
print(clf.predict(["has my parcel been sent?"])[0], "torch" in sys.modules)
"""
TRAINED = """
from cptuning import CPTuningClassifier
texts = ["where is my parcel?", "no parcel yet", "my money back", "a refund please"]
clf = CPTuningClassifier(steps=2, instant_first=False, validation="none", verbose=False)
clf.fit(texts, ["delivery"] * 2 + ["refund"] * 2)
print(clf.predict(["has my parcel been sent?"])[0], clf.training_["best_step"])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", place, ROOT], check=True)
    return place


class Environment:
    """An environment that has what is installed into it and nothing else."""

    def __init__(self, folder, wheel):
        venv.create(folder / "env", with_pip=True)
        self.folder, self.programs, self.wheel = folder, folder / "env" / "bin", wheel

    def start(self, program, *arguments):
        return subprocess.Popen(
            [self.programs / program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )

    def run(self, program, *arguments, check=True):
        with self.start(program, *arguments) as process:
            told, said = process.communicate()
        assert process.returncode == 0 or not check, said
        return subprocess.CompletedProcess(program, process.returncode, told, said)

    def install(self, *names):
        pins = ROOT / "constraints.txt"
        self.run("python", "-m", "pip", "install", "--quiet", "--constraint", pins, *names)

    def has(self, package):
        return self.run("python", "-m", "pip", "show", package, check=False).returncode == 0


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory):
    [wheel] = built.glob("*.whl")
    return Environment(tmp_path_factory.mktemp("installed"), wheel)


def test_what_is_in_the_wheel_and_how_large_both_files_are(built):
    [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.stat().st_size < MOST_MEGABYTES * 1_000_000
    assert sdist.stat().st_size < MOST_MEGABYTES * 1_000_000
    names = zipfile.ZipFile(wheel).namelist()
    assert "cptuning/py.typed" in names
    assert {name.split("/")[0] for name in names} == {
        "cptuning",
        f"cptuning-{PROJECT['version']}.dist-info",
    }


@pytest.mark.slow
def test_each_step_of_the_installation_in_an_empty_environment(environment):
    """The wheel fits and predicts, [serve] serves, both without torch; then [train] trains."""
    environment.install(environment.wheel)
    assert environment.run("python", "-c", INSTANT).stdout.split() == ["delivery", "False"]
    assert not any(map(environment.has, ("torch", "transformers", "pandas", "fastapi")))
    shown = environment.run("cptuning", "--version").stdout
    assert shown == f"cptuning {PROJECT['version']}\n"
    refused = environment.run("cptuning", "app", check=False)
    assert refused.returncode == 2
    assert 'pip install "cptuning[' in refused.stderr

    environment.install(f"{environment.wheel}[serve]")
    assert answer_of_the_service(environment) == "delivery"
    assert not any(map(environment.has, ("torch", "transformers", "pandas")))

    environment.install("torch")  # first and alone, as constraints.txt pins it
    environment.install(f"{environment.wheel}[train]")
    assert environment.run("python", "-c", TRAINED).stdout.split() == ["delivery", "2"]


def answer_of_the_service(environment):
    """Start ``cptuning serve`` on any free port, ask it once, and end it."""
    with environment.start("cptuning", "serve", "model", "--port", "0") as service:
        try:
            address = next(filter(None, (re.search(r"http://[^\s;]+", x) for x in service.stderr)))
            request = urllib.request.Request(
                f"{address[0]}/predict",
                json.dumps({"texts": "has my parcel been sent?"}).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["predictions"][0]["label"]
        finally:
            service.terminate()


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
