"""A server as a process of its own, and a client that hides nothing of what it says."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

LAUNCHER = Path(__file__).parent / "launch.py"
# Long enough for the slowest machine; what is waited for comes much sooner.
PATIENCE = 60


def wait_until(condition, what="it"):
    """Until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


class Server:
    """A running ``cptuning serve``."""

    def __init__(self, folder, *options, log, keys="", gate=None, without_torch=False):
        words = ["--without-torch"] if without_torch else []
        words += ["--gate", gate] if gate else []
        words += ["serve", folder, "--port", 0, *options]
        self.gate = gate
        self.log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, LAUNCHER, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=os.environ | {"CPTUNING_API_KEYS": keys},
            )
        wait_until(lambda: self.process.poll() is not None or "/docs" in self.said, "the server")
        assert self.process.poll() is None, self.said
        found = re.search(r"http://(\S+):(\d+)", self.said)
        self.host, self.port = found[1], int(found[2])

    @property
    def said(self):
        """What is in its log."""
        return self.log.read_text()

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def ask(self, method, path, body=None, headers=None, raw=None):
        """A request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            payload = json.dumps(body).encode() if raw is None and body is not None else raw
            kind = {"Content-Type": "application/json"} if payload is not None else {}
            connection.request(method, path, payload, kind | (headers or {}))
            response = connection.getresponse()
            text = response.read().decode()
            is_json = response.getheader("content-type") == "application/json"
            return SimpleNamespace(
                status=response.status,
                headers=response.headers,
                text=text,
                json=json.loads(text) if is_json else None,
            )
        finally:
            connection.close()

    def post(self, path, body=None, **options):
        return self.ask("POST", path, body, **options)

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def predict(self, *texts, **more):
        """The predictions of a request that is answered."""
        answer = self.post("/predict", {"texts": list(texts), **more})
        assert answer.status == 200, answer.text
        return answer.json["predictions"]

    def metric(self, line):
        """The value of a metric, 0 where there is none yet."""
        found = re.search(rf"^{re.escape(line)} (\S+)$", self.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    @contextmanager
    def raw(self):
        """A bare connection."""
        with socket.create_connection((self.host, self.port), timeout=PATIENCE) as connection:
            yield connection

    def exchange(self, data):
        """What comes back, up to its end, for some bytes."""
        with self.raw() as connection:
            connection.sendall(data)
            return read_all(connection)

    @contextmanager
    def held(self):
        """The worker at the gate, with a request in its hands; gives that request's answer."""
        self.gate.touch()
        with ThreadPoolExecutor(1) as pool:
            try:
                first = pool.submit(self.post, "/predict", {"texts": ["held"]})
                wait_until(self.gate.with_name(f"{self.gate.name}.waiting").exists, "the worker")
                yield first
            finally:
                self.open_gate()

    def open_gate(self):
        self.gate.unlink(missing_ok=True)
        self.gate.with_name(f"{self.gate.name}.waiting").unlink(missing_ok=True)

    def stop(self, how=signal.SIGTERM):
        """Tell it to stop, and wait until it has."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(PATIENCE)


def read_all(connection):
    """Until the other side closes, kindly or not."""
    received = b""
    try:
        while more := connection.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    return received
