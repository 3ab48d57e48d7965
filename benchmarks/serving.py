"""How much load the service can take, and what happens beyond that.

    python benchmarks/serving.py [MODEL] [--minutes 10] [--seconds 10] [--clients 32] [--record]

Starts ``cptuning serve`` and sends it single texts: from several clients, each of which sends the
next one when it is answered, first without batches across requests, then with them. Then it sends
more and more until the rate of answers no longer grows, and twice that rate for some minutes,
whether requests are answered or not; it counts the answers by status. At last the clients ask
while another client holds 950 half-open connections and others take their answers slowly; while
the model is taught and reloaded; and two servers of one folder are taught at the same time.
Without a model, one is made from the demo's examples, untrained and exported. Client and server
share the machine. Exits with 1 if there was any answer but 200 and 429, if the memory grew by more
than 5 %, or if an example that was confirmed is lost.
"""

import argparse
import asyncio
import contextlib
import json
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import cptuning
from cptuning.data import read_table

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "src" / "cptuning" / "data" / "demo"
# With more connections than the server accepts of a client, only that limit would be measured.
MOST_CONNECTIONS = 550
HALF_OPEN = 950
SLOW_READERS = 20
# The other client's address: on Linux, all of 127.0.0.0/8 is this machine.
BESIEGER = "127.0.0.2"
MOST_GROWTH = 0.05


@dataclass
class Tally:
    """The answers to some requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """The times of those that were answered with 200."""

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        if status == 200:
            self.seconds.append(seconds)

    def __str__(self) -> str:
        p50, p99 = 1000 * np.quantile(self.seconds or [np.nan], [0.5, 0.99])
        counts = ", ".join(f"{status}: {n}" for status, n in sorted(self.statuses.items()))
        return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms ({counts})"


class Connection:
    """One HTTP connection, kept open: a minimal client."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        if self.streams is not None and self.streams[0].at_eof():
            self.close()  # It was idle for so long that the server closed it.
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        body = await reader.readexactly(length)
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), body

    def close(self) -> None:
        """Close it; the next request opens it again."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def predict_request(text: str) -> bytes:
    return request_of(json.dumps({"texts": text}).encode())


def request_of(body: bytes, path: str = "/predict") -> bytes:
    return (
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)
    )


async def memory(port: int) -> float:
    """The server's resident memory in MB, as it reports it."""
    connection = Connection(port)
    _, body = await connection.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    connection.close()
    return float(re.search(rb"^process_resident_memory_bytes (\S+)", body, re.MULTILINE)[1]) / 1e6


async def closed_loop(port: int, requests: list[bytes], clients: int, seconds: float) -> Tally:
    """Clients that each send a request as soon as the last one is answered."""
    tally, end = Tally(), time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection, turn = Connection(port), number
        while time.perf_counter() < end:
            began = time.perf_counter()
            status, _ = await connection.ask(requests[turn % len(requests)])
            tally.add(status, time.perf_counter() - began)
            turn += clients
        connection.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return tally


async def open_loop(port: int, requests: list[bytes], rate: float, seconds: float) -> Tally:
    """A fixed rate of requests per second, whether they are answered or not."""
    tally, free, running = Tally(), [], set()
    began = time.perf_counter()

    async def one(number: int) -> None:
        connection = free.pop() if free else Connection(port)
        asked = time.perf_counter()
        try:
            status, _ = await connection.ask(requests[number % len(requests)])
        except (OSError, asyncio.IncompleteReadError) as error:
            print(f"  {error!r} after {time.perf_counter() - asked:.1f} s")
            connection.close()
            status = 0  # no answer at all
        tally.add(status, time.perf_counter() - asked)
        free.append(connection)

    sent, skipped, minute = 0, 0, 0
    while (now := time.perf_counter() - began) < seconds:
        while sent + skipped < now * rate:
            if len(running) >= MOST_CONNECTIONS:
                skipped += 1
                continue
            task = asyncio.create_task(one(sent))
            running.add(task)
            task.add_done_callback(running.discard)
            sent += 1
        if now // 60 > minute:
            minute = now // 60
            print(f"  minute {minute:.0f}: {await memory(port):.0f} MB", flush=True)
        await asyncio.sleep(0.005)
    await asyncio.gather(*running)
    for connection in free:
        connection.close()
    if skipped:
        print(f"  {skipped} requests were not sent: {MOST_CONNECTIONS} were open.")
    return tally


@contextmanager
def server(model: Path, *options: object) -> Iterator[int]:
    """Run a server in a process of its own; give its port."""
    words = ["serve", model, "--port", 0, *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "cptuning", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stderr.readline()
        yield int(re.search(r"http://[^ ]*:(\d+)", line)[1])
    finally:
        process.terminate()
        process.wait()


def demo_model(folder: Path) -> Path:
    """The demo's classes on the embedded backbone, untrained, exported."""
    from cptuning import CPTuningClassifier
    from cptuning.export import export_onnx

    table = read_table(str(DEMO / "messages_train.csv"), need_label=True)
    classifier = CPTuningClassifier(steps=0, validation="none", verbose=False)
    export_onnx(classifier.fit(table.examples, table.labels), folder / "demo")
    return folder / "demo"


async def measure(port: int, requests: list[bytes], how: str, chosen: argparse.Namespace) -> float:
    await closed_loop(port, requests, chosen.clients, 1)  # a warm-up
    tally = await closed_loop(port, requests, chosen.clients, chosen.seconds)
    rate = tally.statuses[200] / chosen.seconds
    what = f"{chosen.clients} clients, one text per request, {how}"
    findings.say(f"{what}: {rate:.0f} requests/s, {tally}", set(tally.statuses) == {200})
    return rate


async def capacity(port: int, requests: list[bytes], rate: float, seconds: float) -> float:
    """How many requests per second are answered when more than that are sent."""
    while True:
        tally = await open_loop(port, requests, rate, seconds)
        answered = tally.statuses[200] / seconds
        if answered < rate / 2:
            return answered
        rate *= 2


async def overload(
    port: int, requests: list[bytes], rate: float, chosen: argparse.Namespace
) -> None:
    rate = 2 * await capacity(port, requests, 2 * rate, chosen.seconds)
    before = await memory(port)
    tally = await open_loop(port, requests, rate, 60 * chosen.minutes)
    after = await memory(port)
    findings.say(
        f"twice its capacity, {rate:.0f} requests/s, for {chosen.minutes:g} minutes: "
        f"{tally.statuses[200] / (60 * chosen.minutes):.0f} answered/s, {tally}",
        set(tally.statuses) <= {200, 429},
    )
    growth = after / before - 1
    findings.say(
        f"memory at its start {before:.0f} MB, at its end {after:.0f} MB ({growth:+.1%})",
        growth <= MOST_GROWTH,
    )


@asynccontextmanager
async def besieged(port: int) -> AsyncIterator[None]:
    """Another client holds connections without a whole request, again when they are closed.

    And some ask for much, and take hardly any of the answer.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))

    async def half_open() -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, local_addr=(BESIEGER, 0)
                )
                writer.write(b"POST /predict HTTP/1.1\r\nHost: localhost\r\n")
                await reader.read()
                writer.close()
            await asyncio.sleep(1)

    async def read_slowly() -> None:
        body = json.dumps({"texts": ["a"] * 64, "explain": 20}).encode()
        while True:
            with contextlib.suppress(OSError):
                narrow = socket.socket()
                narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                narrow.setblocking(False)
                await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", port))
                await asyncio.get_running_loop().sock_sendall(narrow, request_of(body))
                for _ in range(60):
                    await asyncio.sleep(1)
                    narrow.recv(100)
            narrow.close()

    tasks = [asyncio.create_task(half_open()) for _ in range(HALF_OPEN)]
    tasks += [asyncio.create_task(read_slowly()) for _ in range(SLOW_READERS)]
    await asyncio.sleep(2)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def siege(port: int, requests: list[bytes], chosen: argparse.Namespace) -> None:
    """What others get meanwhile."""
    async with besieged(port):
        tally = await closed_loop(port, requests, chosen.clients, 3 * chosen.seconds)
    findings.say(
        f"{chosen.clients} clients beside {HALF_OPEN} half-open connections of another one and "
        f"{SLOW_READERS} slow readers: {tally.statuses[200] / (3 * chosen.seconds):.0f} "
        f"answered/s, {tally}",
        set(tally.statuses) <= {200, 429} and tally.statuses[200] > 0,
    )


async def teach(port: int, seconds: float, name: str, *, reload: bool) -> tuple[Tally, list[str]]:
    """One example after another, with a reload after every tenth; those that were confirmed."""
    tally, confirmed, end = Tally(), [], time.perf_counter() + seconds
    connection, number = Connection(port), 0
    while time.perf_counter() < end:
        number += 1
        text, began = f"{name} {number}", time.perf_counter()
        body = json.dumps({"texts": text, "labels": "delivery"}).encode()
        status, _ = await connection.ask(request_of(body, "/examples"))
        tally.add(status, time.perf_counter() - began)
        confirmed += [text] if status == 200 else []
        if reload and number % 10 == 0:
            status, _ = await connection.ask(request_of(b"", "/models/demo/reload"))
            tally.statuses[status] += 1
        await asyncio.sleep(0.05)
    connection.close()
    return tally, confirmed


async def changing(port: int, requests: list[bytes], chosen: argparse.Namespace) -> list[str]:
    """Questions while the model is taught and reloaded."""
    asked, (taught, confirmed) = await asyncio.gather(
        closed_loop(port, requests, chosen.clients, 3 * chosen.seconds),
        teach(port, 3 * chosen.seconds, "taught under load", reload=True),
    )
    findings.say(
        f"{chosen.clients} clients while the model is taught and reloaded: {asked}; the teacher: "
        f"{taught}",
        set(asked.statuses) | set(taught.statuses) <= {200, 429},
    )
    return confirmed


async def two_servers(ports: list[int], requests: list[bytes], seconds: float) -> list[str]:
    """Two processes that serve one folder, each asked and taught."""
    found = await asyncio.gather(
        *(closed_loop(port, requests, 4, seconds) for port in ports),
        *(teach(port, seconds, f"to server {port}", reload=False) for port in ports),
    )
    asked, taught = found[:2], found[2:]
    statuses = {status for tally in asked for status in tally.statuses}
    statuses |= {status for tally, _ in taught for status in tally.statuses}
    findings.say(
        "two servers of one folder, both asked and taught: " + "; ".join(map(str, asked)),
        # A server that finds the folder locked by the other one says 503, and learns nothing.
        statuses <= {200, 429, 503},
    )
    return [text for _, confirmed in taught for text in confirmed]


def require_known(model: Path, confirmed: list[str]) -> None:
    """Every example that was confirmed is in the folder."""
    known = set(cptuning.load(model).predictor_.support.examples)
    lost = [text for text in confirmed if text not in known]
    findings.say(f"{len(confirmed)} examples were confirmed, {len(lost)} of them lost", not lost)


@dataclass
class Findings:
    """What is said, and whether all of it is as it should be."""

    lines: list[str] = field(default_factory=list)
    are_good: bool = True

    def say(self, line: str, is_good: bool) -> None:
        """Print and keep a line."""
        self.lines.append(line if is_good else f"{line} (THIS IS WRONG)")
        self.are_good &= is_good
        print(self.lines[-1], flush=True)


findings = Findings()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--record", action="store_true", help="for docs/promises.md")
    chosen = parser.parse_args()
    texts = read_table(str(DEMO / "messages_test.csv")).examples.first
    requests = [predict_request(text) for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        made = chosen.model or demo_model(Path(folder))
        # A copy: it is taught.
        model = Path(shutil.copytree(made, Path(folder, "served", "demo")))
        with server(model, "--batch-rows", 1) as port:
            asyncio.run(measure(port, requests, "without batches", chosen))
        with server(model) as port:
            rate = asyncio.run(measure(port, requests, "in batches", chosen))
            asyncio.run(overload(port, requests, rate, chosen))
            asyncio.run(siege(port, requests, chosen))
            confirmed = asyncio.run(changing(port, requests, chosen))
        with server(model) as first, server(model) as second:
            confirmed += asyncio.run(two_servers([first, second], requests, chosen.seconds))
        require_known(model, confirmed)
    if chosen.record:
        sys.path.insert(0, str(ROOT))
        from tests.last_runs import record

        given = f"--minutes {chosen.minutes:g} --seconds {chosen.seconds:g}"
        command = f"python benchmarks/serving.py {given} --clients {chosen.clients}"
        record("load", command, findings.lines)
    sys.exit(0 if findings.are_good else 1)


if __name__ == "__main__":
    main()
