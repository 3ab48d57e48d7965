"""The curl commands of the service's page: each is run, and answers in the shape that is shown."""

import inspect
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from cptuning.commands.serve import serve

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
SHOWN = re.findall(r"```sh\n(curl .*?)```\s+```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def server(start_session, folders, tmp_path_factory):
    root = tmp_path_factory.mktemp("docs")
    shutil.copytree(folders / "films", root / "shop")
    return start_session(root)


# What differs from model to model: the labels, and whether an example of another class is nearer.
OF_THE_MODEL = ("probabilities", "against")


def shape(answer):
    """An answer without its values; of a list, its first item."""
    if isinstance(answer, list):
        return [shape(item) for item in answer[:1]]
    if not isinstance(answer, dict):
        return None
    return {n: None if n in OF_THE_MODEL else shape(value) for n, value in answer.items()}


def test_all_commands_are_found():
    assert len(SHOWN) == PAGE.read_text("utf-8").count("curl ") == 6


@pytest.mark.parametrize(("command", "answer"), SHOWN)
def test_a_command_is_answered_as_shown(server, command, answer):
    words = shlex.split(command.replace("\\\n", " "))[1:]
    method, body, headers, path = "GET", None, {}, None
    while words:
        word = words.pop(0)
        if word == "-d":
            method, body = "POST", words.pop(0).encode()
        elif word == "-X":
            method = words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word != "-s":
            path = word.removeprefix("localhost:8000")
    found = server.ask(method, path, raw=body, headers=headers)
    assert shape(found.json) == shape(json.loads(answer))
    for prediction in found.json.get("predictions", ()):
        if prediction["against"] is not None:
            assert shape(prediction["against"]) == shape(prediction["neighbours"][0])
    if "error" in found.json:
        assert found.json == json.loads(answer)


def test_the_defaults_are_those_of_the_command():
    table = re.findall(r"^\| `--([a-z-]+)` \| (\d+)", PAGE.read_text("utf-8"), re.MULTILINE)
    parameters = inspect.signature(serve).parameters
    assert table
    for option, default in table:
        assert parameters[option.replace("-", "_")].default == int(default)
