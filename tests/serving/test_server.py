"""What is seldom seen: a bug in the server, too many connections, other kinds of addresses."""

import asyncio
import json
import socket

import pytest
import uvicorn
from uvicorn.server import ServerState

from cptuning.errors import CPTuningError
from cptuning.serving.api_keys import ApiKeys
from cptuning.serving.application import create_app
from cptuning.serving.limits import Limits
from cptuning.serving.model_registry import ModelRegistry
from cptuning.serving.prometheus import Metrics
from cptuning.serving.protocol import protocol_with
from cptuning.serving.served_model import ServedModel
from cptuning.serving.server import listening_socket, url_of


async def call(app, path, body):
    """What an ASGI application answers."""
    sent = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    with pytest.raises(RuntimeError, match="a bug"):  # for the log
        await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_bug_is_confessed_without_its_details(films, monkeypatch):
    limits, metrics = Limits(), Metrics()
    registry = ModelRegistry(films, limits, metrics)

    def fail(self, examples):
        raise RuntimeError("a bug with secrets")

    monkeypatch.setattr(ServedModel, "predict", fail)
    app = create_app(registry, limits, metrics, ApiKeys([]))
    status, answer = asyncio.run(call(app, "/predict", {"texts": ["a"]}))
    assert (status, answer) == (500, {"error": "Internal server error: see the server's log."})
    assert b'cptuning_requests_total{route="/predict",status="500"} 1.0' in metrics.text()
    registry.close()


async def answers_to_connections(n_connections, **limits):
    """What each of some connections gets that ask for nothing."""

    async def app(scope, receive, send):
        raise AssertionError("nothing was asked")

    config = uvicorn.Config(app, http=protocol_with(Limits(**{"seconds": 0.2} | limits)))
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: config.http_protocol_class(config, state, {}), "127.0.0.1", 0
    )
    config.load()
    port = server.sockets[0].getsockname()[1]
    streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(n_connections)]
    received = [await reader.read() for reader, _ in streams]
    for _, writer in streams:
        writer.close()
    server.close()
    return received


@pytest.mark.parametrize("limit", ["connections", "client_connections"])
def test_more_connections_than_are_taken_are_told_to_come_back(limit):
    first, second, third = asyncio.run(answers_to_connections(3, **{limit: 2}))
    assert first.startswith(b"HTTP/1.1 408")
    assert second.startswith(b"HTTP/1.1 408")
    assert third.startswith(b"HTTP/1.1 429 Too Many Requests")
    assert b"retry-after: 1\r\n" in third
    assert json.loads(third.partition(b"\r\n\r\n")[2])["error"].startswith(
        "The server is overloaded"
    )


def test_headers_have_a_shorter_time_than_the_rest():
    [answer] = asyncio.run(answers_to_connections(1, head_seconds=0.2, seconds=3600))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"The request took longer than 0.2 s to arrive." in answer


def test_addresses_of_the_newer_kind():
    try:
        listener = listening_socket("::1", 0)
    except CPTuningError:
        pytest.skip("This machine has no IPv6.")
    with listener:
        assert url_of(listener).startswith("http://[::1]:")


def test_a_host_that_is_none_is_named_with_keys_as_well():
    with pytest.raises(CPTuningError, match=r"Can't listen on no\.such\.host\.invalid"):
        listening_socket("no.such.host.invalid", 80)


def test_a_socket_that_is_closed_frees_its_port():
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass
    listening_socket("127.0.0.1", port).close()
