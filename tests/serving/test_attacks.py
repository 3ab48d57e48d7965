"""Connections that never end, and bytes that are no HTTP: the server stays as it is."""

import contextlib
import json
import resource
import select
import socket

import pytest
from tests.serving.client import PATIENCE, read_all, wait_until

BODY = json.dumps({"texts": ["a"]}).encode()
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(start_session, folders):
    return start_session(folders / "films", "--timeout", 3)


@pytest.fixture(autouse=True)
def unharmed(server):
    yield
    assert len(server.predict("still there?")) == 1


def answer_of(received):
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert list(json.loads(body)) == ["error"]
    return int(head.split()[1])


@pytest.mark.parametrize(
    "junk",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50),  # TLS
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no host
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1e3\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        HEAD + b"Content-Length: 16\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_400(server, junk):
    assert answer_of(server.exchange(junk)) == 400


@pytest.mark.parametrize("path", [b"/predict", b"/nothing", b"/health"])
def test_a_second_request_inside_a_first_one_is_not_smuggled(server, path):
    """Of two headers that say where a body ends, a proxy in front may believe the other one."""
    inside = b"GET /models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = HEAD.replace(b"/predict", path)
    both = head + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(inside)
    received = server.exchange(both + b"0\r\n\r\n" + inside)
    assert answer_of(received) == 400
    assert b"not both" in received
    assert received.count(b"HTTP/1.1 ") == 1


def drip(connection, data):
    """What comes back for bytes that are sent one by one, slowly, until something does."""
    for byte in data:
        try:
            connection.sendall(bytes([byte]))
        except (BrokenPipeError, ConnectionResetError):  # Answered, and closed, in between.
            break
        if select.select([connection], [], [], 0.1)[0]:
            break
    return read_all(connection)


def test_a_head_that_drips_is_given_up(server):
    with server.raw() as connection:
        assert answer_of(drip(connection, HEAD * 100)) == 408


def test_a_connection_that_says_nothing_is_closed(server):
    with server.raw() as connection:
        assert answer_of(read_all(connection)) == 408


def test_a_body_that_never_comes_is_given_up(server):
    for head in (b"Content-Length: 100\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"):
        with server.raw() as connection:
            connection.sendall(HEAD + head)
            assert answer_of(read_all(connection)) == 408


def test_a_body_that_drips_is_given_up(server):
    with server.raw() as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        assert answer_of(drip(connection, b"x" * 600)) == 408


def test_a_body_that_goes_on_after_its_refusal_is_cut_off(server):
    with server.raw() as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")

        def is_cut_off():
            try:
                connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            except (BrokenPipeError, ConnectionResetError):
                return True
            return False

        wait_until(is_cut_off)


def test_a_client_that_closes_its_half_still_gets_its_answer(server):
    with server.raw() as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).startswith(b"HTTP/1.1 200")


def test_a_client_that_goes_away_amid_its_body_is_forgotten(server):
    for _ in range(5):
        with server.raw() as connection:
            connection.sendall(HEAD + b"Content-Length: 100\r\n\r\nhalf")
            connection.shutdown(socket.SHUT_WR)
            assert read_all(connection) == b""


def test_a_client_that_takes_no_answer_is_dropped(server):
    """The answers to a hundred requests at once fill every buffer on the way."""
    body = json.dumps({"texts": ["a"] * 256, "explain": 6}).encode()
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    before = server.metric("process_open_fds")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((server.host, server.port))
        connection.setblocking(False)
        sent, everything = 0, request * 100

        def is_dropped():
            nonlocal sent
            try:
                if sent < len(everything):
                    sent += connection.send(everything[sent : sent + 65536])
            except BlockingIOError:
                pass
            except OSError:
                return True
            return server.metric("process_open_fds") <= before

        wait_until(is_dropped, "the end of the connection")


def test_requests_in_a_row_on_one_connection_are_answered_in_their_order(server):
    """The fourth is no JSON, and does not disturb the others."""
    bodies = [json.dumps({"texts": ["a"] * n}).encode() for n in (1, 2, 3)] + [b"{"]
    with server.raw() as connection:
        for body in bodies:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        received = read_all(connection)
    assert [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]][:4] == [200, 200, 200, 400]


def test_idle_connections_do_not_keep_others_out(server):
    idle = [socket.create_connection((server.host, server.port)) for _ in range(50)]
    try:
        assert len(server.predict("a", "b")) == 2
    finally:
        for connection in idle:
            connection.close()


def test_a_client_with_950_half_open_connections_does_not_lock_others_out(server):
    """Another client has another address; of the first one, only so many are taken."""
    with contextlib.ExitStack() as opened:
        opened.enter_context(room_for_files(2000))
        for _ in range(950):
            idle = socket.create_connection((server.host, server.port))
            opened.enter_context(idle).sendall(HEAD)
        refused = json.dumps({"error": "The server is overloaded: try again in 1 s."}).encode()
        assert read_all(idle).endswith(refused)
        another = socket.create_connection((server.host, server.port), PATIENCE, ("127.0.0.2", 0))
        with another:
            another.sendall(HEAD + b"Connection: close\r\n")
            another.sendall(b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
            assert read_all(another).startswith(b"HTTP/1.1 200")
    wait_until(lambda: server.metric("process_open_fds") < 500, "the end of the connections")


@contextlib.contextmanager
def room_for_files(n):
    """So many open files, where the machine lets them be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(n, hard)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
