"""Untrusted ONNX files: rejected unless they contain all they need, and nothing unbounded.

The base install has ONNX Runtime but not the package onnx, so the few fields that matter are read
here from the protobuf wire format (protobuf.dev/programming-guides/encoding). Their numbers are
those of onnx.proto.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cptuning.errors import CPTuningError
from cptuning.files.places import cached_file

# ONNX Runtime reads no larger protobuf message.
MAX_BYTES = 2**31 - 1
# An encoder of a hundred layers has a tenth of it.
MAX_OPERATORS = 50_000
# ONNX's own operators, under both of their names, and those that ONNX Runtime adds.
_DOMAINS = (b"", b"ai.onnx", b"com.microsoft")

# The fields that hold messages of interest: by the message they are in, then by their number.
_MESSAGES = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 10: "tensor"},
}
_REFUSED = {
    ("tensor", 13): "weights in another file",
    ("attribute", 6): "a subgraph",
    ("attribute", 11): "a subgraph",
    ("model", 20): "a training graph",
    ("model", 25): "functions of its own",
    ("graph", 15): "sparse weights",
    ("attribute", 22): "sparse weights",
    ("attribute", 23): "sparse weights",
}
_FLOAT = 1
_DATA_LOCATION = ("tensor", 14)
_DOMAIN = ("node", 7)


def read_graph(path: Path) -> bytes:
    """The contents of an ONNX file, if it is a plain file of a sane size and passes the check."""
    try:
        # Neither a link's target nor a pipe: opening those could leave the folder, or wait forever.
        place = cached_file(path, path.parent)
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
                raise CPTuningError(
                    f"{path} is not a plain file of at most 2 GiB: export it again."
                )
            graph = file.read()
    except OSError as error:
        raise unreadable(path) from error
    check_graph(graph, path)
    return graph


def check_graph(graph: bytes, name: Path | str) -> None:
    """Refuse a graph that is not self-contained, or that could loop.

    Weights in other files would be read from wherever the graph says; loops and branches hold
    subgraphs, and an exported encoder has none; operators of other domains need a library.
    """
    try:
        reason = next(_reasons(memoryview(graph), "model"), None)
    except (ValueError, IndexError) as error:
        raise unreadable(name) from error
    if reason is not None:
        raise CPTuningError(
            f"{name} has {reason}, which no exported model has: export the model again."
        )


def declared(shapes: Mapping[str, Sequence[int]]) -> bytes:
    """What to put behind a graph so that it has these float32 tensors, which are in memory.

    Messages that stand one behind the other are read as one with the fields of both.
    """
    elsewhere = _field(13, _field(1, b"location") + _field(2, b"memory")) + _field(14, 1)
    tensors = (
        b"".join(_field(1, size) for size in shape)
        + _field(2, _FLOAT)
        + _field(8, name.encode())
        + elsewhere
        for name, shape in shapes.items()
    )
    return _field(7, b"".join(_field(5, tensor) for tensor in tensors))


def unreadable(name: Path | str) -> CPTuningError:
    """What is said of a file that is no graph."""
    return CPTuningError(f"{name} is not a readable ONNX model: export it again.")


def _reasons(message: memoryview, kind: str) -> Iterator[str]:
    """Why to refuse a message, or one of those inside it."""
    inside = _MESSAGES.get(kind, {})
    operators = 0
    for number, value in _fields(message):
        if inside.get(number) == "node":
            operators += 1
            if operators > MAX_OPERATORS:
                yield f"more than {MAX_OPERATORS:,} operators"
        if (kind, number) in _REFUSED:
            yield _REFUSED[kind, number]
        elif (kind, number) == _DATA_LOCATION and value != 0:
            yield _REFUSED["tensor", 13]
        elif (kind, number) == _DOMAIN and bytes(_message(value)) not in _DOMAINS:
            yield "operators of a foreign domain"
        elif number in inside:
            yield from _reasons(_message(value), inside[number])


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("A number where a message should be.")
    return value


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a protobuf message: their numbers, and their values as integers or bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire_type == 2:
            size, at = _varint(message, at)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"There is no wire type {wire_type}.")
        if at + size > len(message):
            raise ValueError("A field goes past the end of its message.")
        yield number, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """An integer in groups of seven bits, least first, and where it ends.

    >>> _varint(memoryview(bytes([0b1010_1100, 0b10])), 0)
    (300, 2)
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("An integer has more than ten bytes.")


def _field(number: int, value: int | bytes) -> bytes:
    """One field of a message.

    >>> _field(2, 300).hex(), _field(8, b"a").hex()
    ('10ac02', '420161')
    """
    if isinstance(value, int):
        return _as_varint(number << 3) + _as_varint(value)
    return _as_varint(number << 3 | 2) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    """The inverse of :func:`_varint`."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
