"""How much load the service can take, and what happens beyond that.

    python benchmarks/serving.py [MODEL] [--minutes 10] [--seconds 10] [--clients 32]

Starts ``cptuning serve`` and sends it single texts: from several clients, each of which sends the
next one when it is answered, first without batches across requests, then with them. Then it sends
more and more until the rate of answers no longer grows, and twice that rate for some minutes,
whether requests are answered or not; it counts the answers by status. Without a model, one is made
from the demo's examples, untrained and exported. Client and server share the machine.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cptuning.data import read_table

DEMO = Path(__file__).parents[1] / "src" / "cptuning" / "data" / "demo"
# With more connections than the server accepts, only that limit would be measured.
MOST_CONNECTIONS = 800


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
    body = json.dumps({"texts": text}).encode()
    return (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
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
        [sys.executable, "-c", "from cptuning.cli import main; main()", *map(str, words)],
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


async def measure(port: int, requests: list[bytes], chosen: argparse.Namespace) -> float:
    await closed_loop(port, requests, chosen.clients, 1)  # a warm-up
    tally = await closed_loop(port, requests, chosen.clients, chosen.seconds)
    rate = tally.statuses[200] / chosen.seconds
    print(f"  {rate:.0f} requests/s, {tally}", flush=True)
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
    print(f"twice its capacity, {rate:.0f} requests/s, for {chosen.minutes:g} minutes:")
    before = await memory(port)
    tally = await open_loop(port, requests, rate, 60 * chosen.minutes)
    after = await memory(port)
    print(f"  {tally.statuses[200] / (60 * chosen.minutes):.0f} answered/s, {tally}")
    print(f"  memory at the start {before:.0f} MB, at the end {after:.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=32)
    chosen = parser.parse_args()
    texts = read_table(str(DEMO / "messages_test.csv")).examples.first
    requests = [predict_request(text) for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        model = chosen.model or demo_model(Path(folder))
        print(f"{chosen.clients} clients, one text per request, without batches:")
        with server(model, "--batch-rows", 1) as port:
            asyncio.run(measure(port, requests, chosen))
        print(f"{chosen.clients} clients, one text per request, in batches:")
        with server(model) as port:
            rate = asyncio.run(measure(port, requests, chosen))
            asyncio.run(overload(port, requests, rate, chosen))


if __name__ == "__main__":
    main()
