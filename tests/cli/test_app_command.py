"""app: the page is served until Ctrl-C, and only where it was asked to be."""

import signal
import socket
import urllib.request

import pytest
from tests.cli.conftest import start


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_the_page_is_served_until_it_is_stopped(port):
    process = start("app", "--no-browser", "--port", port)
    try:
        line = process.stderr.readline()
        assert line == f"The page is at http://127.0.0.1:{port}/ (press Ctrl-C to stop it).\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}") as answer:
            assert "CP-Tuning" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert stderr == "Stopped.\n"


def test_a_taken_port_is_one_sentence(run, port):
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        result = run("app", "--no-browser", "--port", port)
    assert result.exit_code == 2
    assert f"can't be served at 127.0.0.1:{port}" in result.stderr


def test_a_setting_that_is_none_is_refused(run):
    result = run("app", "--no-browser", "--set", "stepps=3")
    assert result.exit_code == 2
    assert "did you mean steps?" in result.stderr
