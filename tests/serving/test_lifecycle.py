"""Starting, stopping, crashing and reloading, as processes do."""

import json
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from tests.serving.client import PATIENCE, wait_until
from tests.serving.conftest import LABELS, TEXTS
from typer.testing import CliRunner

import cptuning
from cptuning.cli import app
from cptuning.data import ADDED_FILE

NEW = {"texts": ["the red train", "so so"], "labels": ["travel", "fair"]}


def run(*words):
    """A command that is expected to end by itself."""
    return CliRunner().invoke(app, [str(word) for word in words])


class TestStarting:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--host", "0.0.0.0"), "0.0.0.0 can be reached from other machines"),
            (("--host", "no.such.host.invalid"), "no address"),
            (("--default", "other"), "no model 'other'"),
        ],
    )
    def test_what_cannot_be_is_said_in_one_sentence(self, films, options, words):
        result = run("serve", films, "--port", 0, *options)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert words in result.stderr
        assert result.stderr.count("\n") == 1

    def test_a_folder_without_models(self, tmp_path):
        assert "contains none" in run("serve", tmp_path, "--port", 0).stderr
        assert "There is no folder" in run("serve", tmp_path / "x", "--port", 0).stderr

    def test_a_damaged_model_and_a_port_that_is_taken(self, films, start):
        server = start(films)
        result = run("serve", films, "--port", server.port)
        assert (result.exit_code, "Address already in use" in result.stderr) == (2, True)
        (films / "encoder.onnx").write_bytes(b"junk")
        result = run("serve", films, "--port", 0)
        assert (result.exit_code, "not a readable ONNX model" in result.stderr) == (2, True)

    def test_with_a_key_others_may_reach_it(self, films, start):
        server = start(films, "--host", "0.0.0.0", keys="a key that is long enough")
        assert server.get("/health").status == 200
        assert server.get("/models").status == 401

    def test_an_exported_model_is_served_without_torch(self, films, start):
        server = start(films, without_torch=True)
        expected = cptuning.load(films).predict(TEXTS).tolist()
        assert [p["label"] for p in server.predict(*TEXTS)] == expected
        assert server.post("/examples", NEW).json["new_classes"] == ["fair", "travel"]
        assert server.predict("the red train")[0]["label"] == "travel"


class TestExamples:
    def test_they_are_known_at_once_and_counted(self, films, start):
        server = start(films)
        assert server.post("/examples", NEW).json == {
            "model": "films",
            "added": 2,
            "known_already": 0,
            "new_classes": ["fair", "travel"],
            "classes": ["bad", "good", "fair", "travel"],
            "examples": 8,
        }
        found = server.predict("the red train", explain=1)[0]
        assert (found["label"], found["neighbours"][0]["text"]) == ("travel", "the red train")
        again = server.post("/examples", {**NEW, "texts": ["the red train", "new"]}).json
        assert (again["added"], again["known_already"], again["new_classes"]) == (1, 1, [])

    def test_a_label_is_spelt_as_the_model_spells_it(self, folders, tmp_path, start):
        server = start(shutil.copytree(folders / "pairs", tmp_path / "pairs"))
        answer = server.post("/examples", {"texts": [["a", "b"]], "labels": "1"})
        assert (answer.json["added"], answer.json["classes"]) == (1, [0, 1])

    def test_they_survive_a_kill_right_after_the_answer(self, films, start):
        server = start(films)
        for text, label in zip(NEW["texts"], NEW["labels"], strict=True):
            assert server.post("/examples", {"texts": text, "labels": label}).status == 200
        before = server.predict(*TEXTS, explain=8)
        server.stop(signal.SIGKILL)
        with (films / ADDED_FILE).open("a") as file:
            file.write('{"texts": ["torn by the cra')
        again = start(films)
        assert again.predict(*TEXTS, explain=8) == before
        assert again.get("/models/films").json["classes"] == ["bad", "good", "travel", "fair"]
        assert again.post("/examples", {"texts": "more", "labels": "good"}).json["examples"] == 9
        assert len(cptuning.load(films).predictor_.support) == 9

    def test_what_cannot_be_written_is_not_learned(self, films, start):
        server = start(films)
        (films / ADDED_FILE).mkdir()
        answer = server.post("/examples", NEW)
        assert answer.status == 503
        assert "can't be written (Is a directory)" in answer.json["error"]
        assert server.get("/models/films").json["examples"] == len(LABELS)

    def test_a_folder_that_was_replaced_is_not_written_to(self, films, start):
        server = start(films)
        cptuning.load(films).add_examples(["another"], ["good"]).save(films)
        answer = server.post("/examples", NEW)
        assert (answer.status, "reload the model first" in answer.json["error"]) == (409, True)
        assert not (films / ADDED_FILE).exists()
        assert server.post("/models/films/reload").json["examples"] == 7
        assert server.post("/examples", NEW).json["examples"] == 9


class TestStopping:
    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
    def test_what_was_accepted_is_answered(self, films, start, gate, how):
        server = start(films, gate=gate)
        with ThreadPoolExecutor(4) as pool, server.held() as first:
            waiting = [pool.submit(server.post, "/predict", {"texts": ["w"]}) for _ in range(3)]
            learning = pool.submit(server.post, "/examples", NEW)
            wait_until(lambda: server.metric('cptuning_queue_rows{model="films"}') == 5)
            server.process.send_signal(how)
            wait_until(lambda: is_refused(server), "the end of listening")
            server.open_gate()
            answers = [future.result(PATIENCE) for future in (first, *waiting, learning)]
        assert [answer.status for answer in answers] == [200] * 5
        assert server.process.wait(PATIENCE) in (-signal.SIGTERM, 130)
        assert "Traceback" not in server.said
        assert len(cptuning.load(films).predictor_.support) == 8

    def test_idle_connections_do_not_delay_it(self, films, start):
        server = start(films)
        with server.raw() as idle:
            idle.sendall(b"POST /predict HTTP/1.1\r\nHost: loc")
            server.get("/health")
            assert server.stop() == -signal.SIGTERM


def is_refused(server):
    try:
        with server.raw():
            return False
    except ConnectionRefusedError:
        return True


class TestOverload:
    def test_more_than_can_wait_gets_429_and_the_rest_is_answered(self, films, start, gate):
        server = start(films, "--queue", 4, gate=gate)
        with ThreadPoolExecutor(8) as pool, server.held() as first:
            accepted = [pool.submit(server.post, "/predict", {"texts": ["a"] * 2}) for _ in "ab"]
            wait_until(lambda: server.metric('cptuning_queue_rows{model="films"}') == 4)
            for path, body in (("predict", {"texts": "a"}), ("embed", {"texts": "a"})):
                refused = server.post(f"/{path}", body)
                assert refused.status == 429
                assert int(refused.headers["retry-after"]) >= 1
                assert "try again in" in refused.json["error"]
            assert server.post("/examples", NEW).status == 429
            assert server.get("/health").status == server.get("/ready").status == 200
            server.open_gate()
            assert [f.result(PATIENCE).status for f in (first, *accepted)] == [200] * 3
        assert len(server.predict("a")) == 1
        count = 'cptuning_requests_total{route="/predict",status="429"}'
        assert server.metric(count) == 1

    def test_an_answer_that_takes_too_long_is_given_up(self, films, start, gate):
        server = start(films, "--timeout", 3, gate=gate)
        with server.held() as first:
            assert server.post("/predict", {"texts": "late"}).status == 504
            assert first.result(PATIENCE).status == 504
        assert len(server.predict("a")) == 1

    def test_many_clients_at_once_are_all_answered(self, films, start):
        server = start(films, "--queue", 10_000)
        with ThreadPoolExecutor(64) as pool:
            answers = list(pool.map(lambda n: server.predict(*["a"] * (n % 3 + 1)), range(300)))
        assert [len(answer) for answer in answers] == [n % 3 + 1 for n in range(300)]
        batches = server.metric('cptuning_batch_rows_count{model="films"}')
        assert batches < 300


class TestReloading:
    def test_no_request_is_dropped_and_no_example_lost(self, films, start):
        server = start(films)
        stop, statuses = Event(), []

        def ask():
            while not stop.is_set():
                statuses.append(server.post("/predict", {"texts": ["a", "b"]}).status)

        def teach():
            number = 0
            while not stop.is_set():
                number += 1
                body = {"texts": f"example {number}", "labels": "good"}
                assert server.post("/examples", body).status == 200
            return number

        with ThreadPoolExecutor(4) as pool:
            asking, teaching = [pool.submit(ask) for _ in range(3)], pool.submit(teach)
            for _ in range(5):
                assert server.post("/models/films/reload").status == 200
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(statuses) > 50)
            stop.set()
            taught = teaching.result(PATIENCE)
            for future in asking:
                future.result(PATIENCE)
        assert set(statuses) == {200}
        assert server.get("/models/films").json["examples"] == len(LABELS) + taught
        assert len(cptuning.load(films).predictor_.support) == len(LABELS) + taught

    def test_the_new_model_answers_when_the_reload_is_answered(self, films, start):
        server = start(films)
        cptuning.load(films).add_examples(["the red train"], ["travel"]).save(films)
        assert server.predict("the red train")[0]["label"] != "travel"
        assert server.post("/models/films/reload").json["classes"] == ["bad", "good", "travel"]
        assert server.predict("the red train")[0]["label"] == "travel"

    def test_a_damaged_model_does_not_take_the_place_of_a_whole_one(self, films, start):
        server = start(films)
        before = server.predict(*TEXTS)
        (films / "support.jsonl").write_text("junk")
        answer = server.post("/models/films/reload")
        assert answer.status == 409
        assert "was not reloaded" in answer.json["error"]
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "Not reloaded" in server.said)
        assert server.predict(*TEXTS) == before

    def test_models_come_and_go_in_a_folder(self, folders, tmp_path, start):
        for name in ("films", "pairs"):
            shutil.copytree(folders / name, tmp_path / name)
        (tmp_path / "notes.txt").write_text("no model")
        shutil.copytree(folders / "films", tmp_path / ".films-being-saved")
        server = start(tmp_path)
        answer = server.post("/predict", {"texts": ["a"]})
        assert (answer.status, "no default:" in answer.json["error"]) == (404, True)

        shutil.copytree(folders / "films", tmp_path / "more films")
        assert server.post("/models/more%20films/predict", {"texts": ["a"]}).status == 404
        assert server.post("/models/more%20films/reload").status == 200
        assert server.post("/models/more%20films/predict", {"texts": ["a"]}).status == 200

        shutil.rmtree(tmp_path / "pairs")
        assert server.post("/models/pairs/reload").status == 404
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: names(server) == ["films", "more films"])
        assert server.post("/models/pairs/predict", {"texts": [["a", "b"]]}).status == 404


def names(server):
    return [model["name"] for model in json.loads(server.get("/models").text)["models"]]
