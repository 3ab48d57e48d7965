"""What is refused, and how: one sentence of JSON with the right status."""

import json
import shutil

import pytest

KEY, OTHER = "a key that is long enough", "another that is long enough"


@pytest.fixture(scope="module")
def server(start_session, folders, tmp_path_factory):
    small = ("--max-texts", 5, "--max-characters", 50, "--max-body", 2)
    copy = shutil.copytree(folders / "films", tmp_path_factory.mktemp("requests") / "films")
    return start_session(copy, *small)


@pytest.fixture(scope="module")
def locked(start_session, folders):
    return start_session(folders / "films", keys=f"{KEY},{OTHER}")


def refused(answer, status, *words):
    assert answer.status == status, answer.text
    assert list(answer.json) == ["error"]
    sentence = answer.json["error"]
    assert sentence[0].isupper()
    assert sentence.endswith((".", "..."))
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "texts: field required"),
        ([], "valid dictionary"),
        ("texts", "valid dictionary"),
        (None, "valid dictionary"),
        ({"texts": []}, "no examples"),
        ({"texts": None}, "neither a text nor a list"),
        ({"texts": {"a": 1}}, "neither a text nor a list"),
        ({"texts": 3}, "neither a text nor a list"),
        ({"texts": ["a", None]}, "row 2 is missing"),
        ({"texts": ["a", 3]}, "row 2 is a number"),
        ({"texts": [True]}, "row 1"),
        ({"texts": [["a", "b", "c"]]}, "Row 1 has 3 values"),
        ({"texts": ["a", ["b", "c"]]}, "Row 1 is a single text but row 2"),
        ({"texts": [[["a"], "b"]]}, "first text in row 1"),
        ({"texts": ["\ud800"]}, "surrogate"),
        ({"texts": ["a"], "explain": -1}, "explain"),
        ({"texts": ["a"], "explain": 101}, "explain"),
        ({"texts": ["a"], "explain": True}, "explain"),
        ({"texts": ["a"], "explain": "3"}, "explain"),
        ({"texts": ["a"], "explain": 1e99}, "explain"),
        ({"texts": ["a"], "text": "b"}, "text: extra inputs"),
        ({"texts": ["a"], "\ud800": "b"}, "unicode"),
        ({"texts": ["a"], "x" * 900: "b"}, "extra inputs"),
        ({"texts": ["a"] * 6}, "at most 5 at once"),
        ({"texts": ["a", "b" * 51]}, "row 2 has 51 characters: send at most 50"),
    ],
)
def test_a_body_that_is_not_what_is_asked_for(server, body, words):
    refused(server.post("/predict", raw=json.dumps(body).encode()), 422, words)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([], "no labels"),
        (["a"], "2 texts but 1 labels"),
        ("a", "2 texts but 1 labels"),
        (["a", None], "label in row 2"),
        (["a", ["b"]], "label in row 2"),
        (["a", {}], "label in row 2"),
        (["a", float("nan")], "label in row 2"),
        (["a", float("inf")], "label in row 2"),
        (["a", 10**30], "label in row 2"),
        (["a", "\ud800"], "label in row 2"),
        (["a", "x" * 1001], "label in row 2"),
        (["a", ""], "label in row 2"),
        (["a", " \t"], "label in row 2"),
        ([1, True], "of different types"),
    ],
)
def test_labels_that_are_none(server, labels, words):
    raw = json.dumps({"texts": ["a", "b"], "labels": labels}).encode()
    refused(server.post("/examples", raw=raw), 422, words)
    assert server.get("/models/films").json["examples"] == 6


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b'{"texts": ["a"]', b"texts=a", b"\xff\xfe", b'{"texts": ["\xff"]}', b"\x00"),
        *(b'{"texts": ["a"]}}', b'{"texts": ["a\n"]}', b"[" * 1000, b'{"a":' * 300, b"1" * 2000),
        *("Grüße".encode("latin-1"), '{"texts": "a"}'.encode("utf-16")[:-1]),
    ],
)
def test_a_body_that_is_no_json(server, raw):
    answer = server.post("/predict", raw=raw)
    refused(answer, answer.status)
    assert answer.status in (400, 422)


def test_deep_nesting_is_refused_and_harms_nothing(server, locked):
    deep = b"[" * 500_000 + b"]" * 500_000
    answer = locked.post("/predict", raw=deep, headers={"Authorization": f"Bearer {KEY}"})
    assert answer.status in (400, 422)
    refused(server.post("/predict", raw=deep), 413, "larger than 2048 bytes")
    assert server.get("/health").json == {"status": "ok"}


def test_a_body_that_is_not_said_to_be_json(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "json"):
        answer = server.post("/predict", {"texts": ["a"]}, headers={"Content-Type": kind})
        assert answer.status in (415, 422)
        refused(answer, answer.status)


def test_a_body_that_is_too_large_is_refused_while_it_comes(server):
    refused(server.post("/predict", {"texts": ["a" * 3000]}), 413, "larger than 2048 bytes")

    def chunks():
        for _ in range(100):
            yield b"x" * 1000

    refused(server.post("/predict", raw=chunks()), 413)


def test_paths_and_methods_that_are_none(server):
    refused(server.get("/nothing"), 404)
    refused(server.get("/predict"), 405)
    assert server.get("/predict").headers["allow"] == "POST"
    refused(server.ask("DELETE", "/models/films"), 405)
    refused(server.get("/docs-files/../app.py"), 404)
    refused(server.get("/docs-files/%2e%2e/core.py"), 404)


def test_a_server_without_keys_answers_only_to_its_own_name(server):
    refused(server.get("/models", headers={"Host": "attacker.example:8000"}), 403, "localhost")
    refused(server.get("/models", headers={"Host": ""}), 403)
    for name in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "[::1]"):
        assert server.get("/models", headers={"Host": name}).status == 200


def test_the_page_needs_nothing_from_elsewhere(server):
    page = server.get("/docs").text
    assert "/docs-files/swagger-ui-bundle.js" in page
    assert "//" not in page.replace("http-equiv", "").replace("<!--", "")
    assert server.get("/docs-files/swagger-ui-bundle.js").status == 200


def test_the_samples_of_the_page_work(server, start, folders, tmp_path):
    pairs = shutil.copytree(folders / "pairs", tmp_path / "pairs")
    for each in (server, start(pairs)):
        paths = each.get("/openapi.json").json["paths"]
        tried = 0
        for path, operations in paths.items():
            for method, operation in operations.items():
                request_examples = (
                    operation.get("requestBody", {})
                    .get("content", {})
                    .get("application/json", {})
                    .get("examples", {None: {"value": None}})
                )
                names = [p["schema"]["examples"][0] for p in operation.get("parameters", [])]
                body = next(iter(request_examples.values()))["value"]
                found = each.ask(method.upper(), path.replace("{name}", "".join(names)), body)
                assert found.status == 200, (path, found.text)
                tried += 1
        assert tried == 12


@pytest.mark.parametrize("path", ["/predict", "/embed", "/examples", "/models/films/reload"])
@pytest.mark.parametrize(
    "header",
    [
        None,
        *("", "Bearer", "Bearer ", f"Basic {KEY}", KEY, f"Bearer {KEY}x", f"Bearer {KEY[:-1]}"),
        *(f"Bearer {KEY},{OTHER}", "Bearer \xff\xfe", f"Bearer {KEY} {KEY}"),
    ],
)
def test_without_the_right_key_nothing_is_done(locked, path, header):
    headers = {} if header is None else {"Authorization": header}
    answer = locked.post(path, {"texts": ["a"], "labels": ["b"]}, headers=headers)
    refused(answer, 401, "Authorization: Bearer KEY")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_with_a_key_all_is_as_without(locked):
    for key in (KEY, OTHER):
        headers = {"Authorization": f"Bearer {key}", "Host": "service.example"}
        assert locked.post("/predict", {"texts": ["a"]}, headers=headers).status == 200
        assert locked.get("/metrics", headers=headers).status == 200


def test_what_tells_nothing_is_open_and_what_tells_something_is_not(locked):
    for path in ("/health", "/ready", "/docs", "/openapi.json", "/docs-files/swagger-ui.css"):
        assert locked.get(path).status == 200
    for path in ("/metrics", "/models", "/models/films", "/docsx", "/health/", "//health"):
        assert locked.get(path).status == 401
    assert "films" not in locked.get("/openapi.json").text


def test_the_key_is_not_asked_of_a_body(locked):
    """It is refused before the body is read, however long that says it is."""
    head = b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n"
    with locked.raw() as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 401")
