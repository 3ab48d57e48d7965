"""`cptuning add` on a folder that is served: nothing that either confirmed is lost."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.serving.client import LAUNCHER, PATIENCE
from tests.serving.conftest import TEXTS
from typer.testing import CliRunner

import cptuning
import cptuning.registry
from cptuning.cli import app
from cptuning.files.locks import changing
from cptuning.storage import FACTS_FILE


def known(folder):
    return set(cptuning.load(folder).predictor_.support.examples)


def table(path, *texts):
    path.write_text("text,label\n" + "".join(f"{text},good\n" for text in texts))
    return path


def test_an_example_that_comes_while_the_command_is_at_work_is_refused_not_lost(
    films, start, tmp_path, monkeypatch
):
    """The very moment in which it would be written to a folder that is about to be thrown away."""
    server, load, answers = start(films), cptuning.registry.load, []
    late = {"texts": "late", "labels": "good"}

    def load_and_let_the_server_in(folder):
        classifier = load(folder)
        answers.append(server.post("/examples", late))
        return classifier

    monkeypatch.setattr(cptuning.registry, "load", load_and_let_the_server_in)
    more = table(tmp_path / "more.csv", "from the command")
    assert CliRunner().invoke(app, ["add", str(films), str(more)]).exit_code == 0
    monkeypatch.undo()
    assert [answer.status for answer in answers] == [503]
    assert "another process is changing the model" in answers[0].json["error"]
    assert server.post("/examples", late).status == 409
    server.post("/models/films/reload")
    assert server.post("/examples", late).status == 200
    assert known(films) == {*TEXTS, "from the command", "late"}


def test_questions_are_answered_while_the_folder_is_being_changed(films, start):
    server = start(films)
    with changing(films / FACTS_FILE), ThreadPoolExecutor(1) as pool:
        teaching = pool.submit(server.post, "/examples", {"texts": "late", "labels": "good"})
        assert server.post("/predict", {"texts": TEXTS}).status == 200
        assert teaching.result(PATIENCE).status == 503
    assert server.post("/examples", {"texts": "late", "labels": "good"}).status == 200


def test_commands_and_a_server_at_the_same_time_lose_nothing(films, start, tmp_path):
    server = start(films)
    commands = [
        subprocess.Popen(
            [sys.executable, LAUNCHER, "add", films, table(tmp_path / f"{n}.csv", name)],
            stdout=subprocess.DEVNULL,
        )
        for n, name in enumerate(("one", "two", "three"))
    ]
    confirmed = []
    while any(command.poll() is None for command in commands):
        text = f"served {len(confirmed)}"
        answer = server.post("/examples", {"texts": text, "labels": "good"})
        if answer.status == 200:
            confirmed.append(text)
        elif answer.status == 409:
            server.post("/models/films/reload")
        else:
            assert answer.status == 503
    assert [command.wait(PATIENCE) for command in commands] == [0, 0, 0]
    assert known(films) == {*TEXTS, "one", "two", "three", *confirmed}
    assert confirmed


def test_two_servers_on_one_folder_keep_each_others_examples(films, start):
    servers = [start(films), start(films)]

    def teach(number):
        text = f"example {number}"
        answer = servers[number % 2].post("/examples", {"texts": text, "labels": "good"})
        # Whoever finds the folder locked by the other one says so, and nothing is lost.
        assert answer.status in (200, 503)
        return text if answer.status == 200 else None

    with ThreadPoolExecutor(4) as pool:
        confirmed = {text for text in pool.map(teach, range(40)) if text}
    assert confirmed
    assert known(films) == {*TEXTS, *confirmed}
    for server in servers:
        assert server.post("/models/films/reload").status == 200
        assert server.get("/models/films").json["examples"] == len(TEXTS) + len(confirmed)
