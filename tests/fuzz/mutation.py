"""Bytes and JSON that are almost right: the kind of damage that finds what plain noise does not."""

import json
from typing import Any

from hypothesis import strategies as st

PIECES = (
    *(b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\n", b'"', b'""', b",", b";"),
    *(b"\t", b"{", b"}", b"[", b"]", b":", b"\\", b"\\ud800", b"NaN", b"1e999", b"-1", b"null"),
    *("é".encode(), "\u2028".encode(), "🙂".encode(), b"=1+1"),
    *(b"x" * 5000, b"[" * 3000, b"9" * 5000),
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, *seeds: bytes) -> bytes:
    """One of the seeds after a few edits: pieces put in, cut out, repeated, or one byte changed."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        match draw(st.sampled_from(("insert", "cut", "repeat", "flip", "end"))):
            case "insert":
                data[at:at] = draw(st.sampled_from(PIECES) | st.binary(max_size=8))
            case "cut":
                del data[at:end]
            case "repeat":
                data[at:at] = data[at:end] * draw(st.integers(1, 50))
            case "flip" if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case "end":
                del data[at:]
    return bytes(data)


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    (
        *(None, True, False, 0, 1, -1, 2, 0.5, 1e308, -1e308, 2**31, 2**63, 2**70, 10**400),
        *("", "x", "\0", "\ud800", "[MASK]", "{a}", "{b}", "../..", "/dev/zero", "x" * 20_000),
        *([], {}, [[]], [None], [1, "a"], {"a": 1}, [float("nan")], float("inf")),
    )
) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def mutated_json(draw: st.DrawFn, stored: Any) -> Any:
    """A JSON value with one or two of its parts replaced, removed or repeated."""
    value = json.loads(json.dumps(stored))
    for _ in range(draw(st.integers(1, 2))):
        place = value
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and draw(st.integers(0, 4)):
                place = inner
                continue
            match draw(st.sampled_from(("replace", "replace", "remove", "repeat"))):
                case "replace":
                    place[key] = draw(VALUES)
                case "remove":
                    del place[key]
                case "repeat" if isinstance(place, list):
                    place.insert(key, inner)
            break
    return value
