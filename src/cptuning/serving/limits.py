"""The limits of the service: sizes, counts and timeouts, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits that keep one client from using up the server.

    >>> Limits(texts=8).texts
    8
    """

    body_bytes: int = 1 << 20
    """The maximum size of a request body."""
    texts: int = 256
    """The maximum number of texts per request."""
    characters: int = 20_000
    """The maximum length of a text, or of each text of a pair."""
    batch_rows: int = 64
    """The maximum number of texts, of several requests, per batch."""
    batch_wait: float = 0.002
    """How many seconds a request waits for others to share its batch."""
    queue_rows: int = 256
    """The maximum number of texts that wait for a model; further requests get status 429."""
    seconds: float = 30.0
    """The timeout for receiving a request, for answering it, and for sending the answer."""
    head_seconds: float = 10.0
    """The timeout for the headers of a request, at most ``seconds``."""
    connections: int = 900
    """The maximum number of open connections, below a process's usual limit of open files."""
    client_connections: int = 600
    """The maximum number of them from one address, so that no client locks the others out."""
    examples: int = 100_000
    """The maximum number of labelled examples per model."""
