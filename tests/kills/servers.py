"""What is killed while it serves: examples that were confirmed are kept, and it starts again."""

import http.client
import json
import os
import random
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kills.processes import Running
from tests.kills.scenarios import INSTANT, Scenario, copied, prepare

PATIENCE = 120


class ServerTrial:
    """A server in a folder that is killed at random moments, and what the kills have found."""

    scenario: Scenario

    def __init__(self, root: Path) -> None:
        self.root, self.start = root, root / "start"
        prepare(self.scenario, self.start, self.run)
        self.names = {path.name for path in self.start.iterdir()}
        self.started = 0

    def run(self, words: Any, folder: Path) -> int:
        """The exit code of a command that nobody kills."""
        return Running(words, folder, self.root / "log").wait()

    def begin(self, folder: Path, kill_at: int = 0) -> tuple[Running, Path]:
        """The server, started, and what it says."""
        self.started += 1
        log = self.root / f"{self.started}.log"
        return Running(self.words(folder), folder, log, kill_at), log

    def words(self, folder: Path) -> tuple[str, ...]:
        """The command."""
        return tuple(self.scenario.words)

    def kill_once(self, number: int, chance: random.Random) -> bool:
        """Kill the server, start it again, and compare; whether it was killed before its end."""
        raise NotImplementedError


def port_in(log: Path, running: Running) -> int | None:
    """The port that a server says it listens on; None if it has ended before that."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := re.search(
            r"http://127\.0\.0\.1:(\d+)", log.read_text() if log.exists() else ""
        ):
            return int(found[1])
        if running.has_ended():
            return None
        time.sleep(0.01)
    raise AssertionError(f"not ready: {log.read_text()}")


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    """The status and the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class ServeTrial(ServerTrial):
    """``serve``, while a client teaches it one example after another."""

    scenario = Scenario(
        ("serve", "model", "--port", "0"),
        before=[("fit", "train.csv", "--output", "model", *INSTANT)],
    )

    def kill_once(self, number: int, chance: random.Random) -> bool:
        """No example that was confirmed is lost."""
        folder = copied(self.start, self.root / f"killed {number}")
        # By the clock, or at one of the calls that write: opening, syncing, cutting off.
        running, log = self.begin(folder, kill_at=0 if number % 2 else chance.randint(1, 400))
        port = port_in(log, running)
        ends = time.monotonic() + (chance.uniform(0, 1) if number % 2 else PATIENCE)
        confirmed: list[str] = []
        while port is not None and time.monotonic() < ends:
            text = f"example {number} {len(confirmed)}"
            try:
                status, _ = ask(port, "POST", "/examples", {"texts": text, "labels": "good"})
            except (OSError, http.client.HTTPException):
                break
            assert status == 200, log.read_text()
            confirmed.append(text)
        running.kill()
        self.check(folder, confirmed)
        return True

    def check(self, folder: Path, confirmed: list[str]) -> None:
        """The server starts again, knows what it confirmed, and nothing else is left."""
        running, log = self.begin(folder)
        port = port_in(log, running)
        assert port is not None, log.read_text()
        for text in confirmed:
            _, body = ask(port, "POST", "/examples", {"texts": text, "labels": "good"})
            assert json.loads(body)["known_already"] == 1, f"{text} was confirmed, and is lost"
        assert running.end(signal.SIGTERM) in (-signal.SIGTERM, 0), log.read_text()
        assert {path.name for path in folder.iterdir()} == self.names
        whole = {path.name for path in (self.start / "model").iterdir()}
        assert {path.name for path in (folder / "model").iterdir()} <= whole | {"added.jsonl"}


class AppTrial(ServerTrial):
    """``app``, while it starts or serves its page."""

    scenario = Scenario(("app", "--no-browser", "--port"))

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        began = time.monotonic()
        running, log = self.begin(copied(self.start, root / "unbroken"))
        assert port_in(log, running) is not None, log.read_text()
        self.seconds = time.monotonic() - began
        running.kill()

    def words(self, folder: Path) -> tuple[str, ...]:
        """The command, with a port that is free."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            return (*self.scenario.words, str(free.getsockname()[1]))

    def begin(self, folder: Path, kill_at: int = 0) -> tuple[Running, Path]:
        """The page, started, with a folder of its own for temporary files."""
        (folder / "tmp").mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(folder / "tmp")
        return super().begin(folder, kill_at)

    def kill_once(self, number: int, chance: random.Random) -> bool:
        """The next page starts, and removes what the killed one has left."""
        folder = copied(self.start, self.root / f"killed {number}")
        running, _ = self.begin(folder)
        time.sleep(chance.uniform(0, 1.2 * self.seconds))
        running.kill()
        again, log = self.begin(folder)
        port = port_in(log, again)
        assert port is not None, log.read_text()
        status, _ = ask(port, "GET", "/")
        left = list((folder / "tmp").glob("cptuning-app-*/owner"))
        again.kill()
        assert status == 200
        assert len(left) <= 1, f"left behind: {left}"
        assert {path.name for path in folder.iterdir()} == self.names | {"tmp"}
        return True


SERVERS: dict[str, Callable[[Path], ServerTrial]] = {
    "serve with writes": ServeTrial,
    "app": AppTrial,
}
