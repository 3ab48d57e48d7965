"""The steps of the Dockerfile, as far as they run without an engine: in a folder for the root."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cptuning import CPTuningClassifier

ROOT = Path(__file__).parents[1]
DOCKERFILE = re.sub(r" *\\\n *", " ", (ROOT / "Dockerfile").read_text("utf-8"))


def lines_of(instruction):
    """What follows an instruction, wherever it stands."""
    return re.findall(rf"^{instruction} +(.*)$", DOCKERFILE, re.MULTILINE)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.mark.slow
def test_the_image_serves_a_model_without_torch_and_says_that_it_is_healthy(tmp_path):
    """COPY, RUN, ENV, ENTRYPOINT, CMD and HEALTHCHECK; the users of the image need a real one."""
    source, opt, models = tmp_path / "source", tmp_path / "opt", tmp_path / "models"
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = [shlex.split(line) for line in lines_of("COPY") if not line.startswith("--from")]
    for *names, place in copied:
        for name in names:
            assert f"!{name}" in ignored  # All else is left out of the context.
            target = source / place / (name if place == "./" else "")
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)

    [build, *_] = lines_of("RUN")
    [extras] = re.findall(r"EXTRAS=(\S+)", DOCKERFILE)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    build = build.replace("/opt/cptuning", str(opt)).replace("python ", f"{sys.executable} ", 1)
    subprocess.run(["sh", "-c", build], cwd=source, env=variables | {"EXTRAS": extras}, check=True)
    assert not list(opt.glob("lib/*/site-packages/torch"))

    texts = ["where is my parcel?", "no parcel yet", "my money back", "a refund please"]
    classifier = CPTuningClassifier(preset="instant", verbose=False)
    classifier.fit(texts, ["delivery"] * 2 + ["refund"] * 2).save(models / "shop")

    port = free_port()
    [entrypoint], [command] = lines_of("ENTRYPOINT"), lines_of("CMD")
    serve = [*json.loads(entrypoint), *json.loads(command)]
    serve = [word.replace("/models", str(models)) for word in serve] + ["--port", port]
    [set_variables] = lines_of("ENV")
    for name, value in (item.split("=") for item in set_variables.split()):
        variables[name] = value.replace("/opt/cptuning", str(opt)).replace(
            "$PATH", variables["PATH"]
        )
    variables.pop("CPTUNING_API_KEYS", None)
    refused = subprocess.run(serve, env=variables, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "CPTUNING_API_KEYS" in refused.stderr

    [health] = re.findall(r'\["python".*\]', DOCKERFILE)
    check = [word.replace(":8000", f":{port}") for word in json.loads(health)]
    keyed = variables | {"CPTUNING_API_KEYS": "sixteen characters"}
    with subprocess.Popen(serve, env=keyed, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert any("Serving" in line for line in service.stderr)
            subprocess.run(check, env=variables, check=True)
        finally:
            service.terminate()
