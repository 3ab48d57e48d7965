"""What the service takes and how long it waits: every bound, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The bounds that keep one client from taking everything.

    >>> Limits(texts=8).texts
    8
    """

    body_bytes: int = 1 << 20
    """The largest body of a request."""
    texts: int = 256
    """The most texts of a request."""
    characters: int = 20_000
    """The longest text, or text of a pair."""
    batch_rows: int = 64
    """The most texts of several requests that are read together."""
    batch_wait: float = 0.002
    """How many seconds a request waits for others to be read with."""
    queue_rows: int = 256
    """The most texts that wait for a model; what comes on top is refused with 429."""
    seconds: float = 30.0
    """How long a request may take to arrive, to be answered, and its answer to be taken."""
    connections: int = 900
    """The most connections at a time: more than can wait, fewer than a process may open files."""
    examples: int = 100_000
    """The most labelled examples that a model may come to know."""
