"""Text to token ids: where [CLS], the texts, [PRO], [OMSK] and the separators stand."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.prompting.template import Mask, Part, Prompts, Separator, Template, Text, Words

IntArray = NDArray[np.int64]
# The tokens of texts are cached if the texts have at most this many characters together.
_MOST_REMEMBERED = 500_000


@dataclass(frozen=True)
class SpecialTokens:
    """The ids that a tokenizer puts before, between and after texts, and its mask and padding."""

    prefix: tuple[int, ...]
    between: tuple[int, ...]
    suffix: tuple[int, ...]
    mask: int
    pad: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, mask: int, pad: int) -> "SpecialTokens":
        """Find them in what the tokenizer itself makes of a pair of texts."""
        pair = _plain_copy(tokenizer.to_str()).encode("a", "a")
        is_text = [not special for special in pair.special_tokens_mask]
        start, end = is_text.index(True), len(is_text) - is_text[::-1].index(True)
        middle = [i for i in range(start, end) if not is_text[i]]
        ids = pair.ids
        return cls(
            prefix=tuple(ids[:start]),
            between=tuple(ids[i] for i in middle),
            suffix=tuple(ids[end:]),
            mask=mask,
            pad=pad,
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "SpecialTokens":
        """The inverse of :meth:`to_json`."""
        lists = {name: tuple(values[name]) for name in ("prefix", "between", "suffix")}
        return cls(**lists, mask=values["mask"], pad=values["pad"])


@dataclass(frozen=True)
class Encoding:
    """One example as the model reads it.

    An id of ``vocabulary + j`` is the j-th [PRO]: prompts live past the end of the vocabulary.
    """

    ids: IntArray
    types: IntArray
    is_text: NDArray[np.bool_]
    output: int
    """The position of [OMSK]; of the first one, if there are several in a row."""
    shortened: bool
    others: "tuple[Encoding, ...]" = ()
    """What else is read for the same example: the texts of a pair, one by one."""
    windows: "tuple[Encoding, ...]" = ()
    """The further windows of a long text, as long as this one; its embedding is made of all."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def length(self) -> int:
        """The tokens of all that is read for the example."""
        return len(self) + sum(map(len, self.others))

    @property
    def sequences(self) -> "tuple[Encoding, ...]":
        """All that is read for the example, each sequence by itself."""
        return (replace(self, others=()), *self.others)

    @property
    def key(self) -> tuple[object, ...]:
        """What sequences have in common that a model reads alike."""
        return self.ids.tobytes(), self.types.tobytes(), self.is_text.tobytes(), self.output

    def without(self, start: int, stop: int) -> "Encoding":
        """The same with some positions left out; ``output`` is not changed."""
        kept = np.r_[0:start, stop : len(self)]
        return replace(self, ids=self.ids[kept], types=self.types[kept], is_text=self.is_text[kept])


class Layout:
    """Lays examples out as the paper's example table does, for any tokenizer.

    Long texts are cut at the end, the longer text first; the prompt, [OMSK] and the separators are
    never cut. What looks like a special token inside a text is treated as ordinary text.

    ``trainable_words`` makes a [PRO] of each token of the prompt's own words, as CP-Tuning does;
    without it they are ordinary tokens, and only what the template calls [PRO] is one. ``masks``
    is the number of consecutive output masks, one for each token of the longest label word.
    ``text_prefix`` is put before every text, as if it were a part of it. With ``sentences`` the
    texts of a pair are also read one by one, and only so if the template has no output.

    With more than one of ``windows``, a single text that is too long is not cut, but read in up to
    so many windows of the same length, which overlap by at least a quarter.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        special: SpecialTokens,
        template: Template,
        *,
        vocabulary: int,
        max_length: int,
        trainable_words: bool = True,
        masks: int = 1,
        text_prefix: str = "",
        sentences: bool = False,
        windows: int = 1,
    ) -> None:
        self._given = tokenizer.to_str()
        self._tokenizer = _plain_copy(self._given)
        self.special = special
        self.template = template
        self.vocabulary = vocabulary
        self.max_length = max_length
        self.trainable_words = trainable_words
        self.masks = masks
        self.text_prefix = text_prefix
        self.sentences = sentences
        self.windows = windows
        self.prompt_ids = self._lay_out_words()
        self._room = max_length - self._fixed_length()
        self._prefix = len(self._tokenizer.encode(text_prefix, add_special_tokens=False).ids)
        prefix = self._prefix
        if self._room - (1 + self.template.is_pair) * prefix < 1:
            raise CPTuningError(
                f"max_length={max_length} leaves no room for text beside the "
                f"{max_length - self._room + prefix} tokens of the prompt: raise max_length."
            )

    def save_tokenizer(self, path: Path) -> None:
        """Write the tokenizer as a ``tokenizer.json``."""
        path.write_text(self._given, "utf-8")

    def encode(self, examples: Examples) -> list[Encoding]:
        """The model inputs of the examples, in their order."""
        if examples.is_pair != self.template.is_pair:
            expected = "pairs of texts" if self.template.is_pair else "single texts"
            raise CPTuningError(
                f"The template {self.template.source!r} is for {expected}: "
                "give examples of that kind, or another template."
            )
        if examples.second is None or not self.sentences:
            return self._together(examples)
        pairs = list(
            zip(
                map(self.alone, self._tokens(examples.first)),
                map(self.alone, self._tokens(examples.second)),
                strict=True,
            )
        )
        if not self.template.has_output:
            return [replace(a, others=(b,), shortened=a.shortened or b.shortened) for a, b in pairs]
        together = self._together(examples)
        return [replace(one, others=pair) for one, pair in zip(together, pairs, strict=True)]

    def passages(self, text: str) -> list[str]:
        """What a single text's windows hold of it; only itself if it fits into one."""
        _, part = self._place_of("a")
        read = self.text_prefix + part.of(text)
        tokens = self._tokenizer.encode(read, add_special_tokens=False)
        if len(self._windows(len(tokens.ids))) == 1:
            return [text]
        offsets, room = tokens.offsets[self._prefix :], self._room_of_window
        return [
            _whole_words(read, offsets[start][0], offsets[start + room - 1][1])
            for start in self._windows(len(tokens.ids))
        ]

    @property
    def sequences(self) -> int:
        """How many sequences are read for an example."""
        if not (self.sentences and self.template.is_pair):
            return 1
        return 3 if self.template.has_output else 2

    @property
    def word_ids(self) -> list[int]:
        """The ids of the prompt's own words, in their order; a [PRO]'s is past the vocabulary."""
        return [token for tokens in self._words.values() for token in tokens]

    def token_ids(self, words: str, *, opening: bool = False) -> list[int]:
        """The ids of words as they are inside a sentence, behind a space, or opening one."""
        text = words.strip() if opening else " " + words.strip()
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _together(self, examples: Examples) -> list[Encoding]:
        """Each example in one sequence, as the template says."""
        tokens = {"a": self._tokenize(examples.first, "a")}
        if examples.second is None:
            return [self._in_windows(ids) for ids in tokens["a"]]
        tokens["b"] = self._tokenize(examples.second, "b")
        return [
            self._assemble({which: ids[i] for which, ids in tokens.items()})
            for i in range(len(examples))
        ]

    def _in_windows(self, tokens: list[int]) -> Encoding:
        """A single text, in several windows if it is too long and they are allowed."""
        starts = self._windows(len(tokens))
        if len(starts) == 1:
            return self._assemble({"a": tokens})
        prefix, rest, room = tokens[: self._prefix], tokens[self._prefix :], self._room_of_window
        first, *others = (
            self._assemble({"a": [*prefix, *rest[start : start + room]]}) for start in starts
        )
        is_cut = starts[-1] + room < len(rest)
        return replace(first, windows=tuple(others), shortened=is_cut)

    @property
    def _room_of_window(self) -> int:
        return self._room - self._prefix

    def _windows(self, n_tokens: int) -> list[int]:
        """Where the windows of a text of so many tokens start, behind the text's prefix."""
        if self.windows == 1 or n_tokens <= self._room:
            return [0]
        return window_starts(n_tokens - self._prefix, self._room_of_window, self.windows)

    def pieces_of(self, words: Sequence[str]) -> list[list[int]]:
        """The ids of each word as it is inside a sentence, without a text's prefix."""
        return _ids_of(self._tokenizer, [" " + word for word in words])

    def alone(self, tokens: list[int]) -> Encoding:
        """A text in a sequence of its own, without a prompt."""
        prefix, suffix = self.special.prefix, self.special.suffix
        kept = tokens[: self.max_length - len(prefix) - len(suffix)]
        ids = np.array([*prefix, *kept, *suffix], dtype=np.int64)
        place = np.arange(len(ids))
        is_text = (place >= len(prefix)) & (place < len(prefix) + len(kept))
        return Encoding(ids, 0 * ids, is_text, output=0, shortened=len(kept) < len(tokens))

    def _tokenize(self, texts: Sequence[str], which: str) -> list[list[int]]:
        before, part = self._place_of(which)
        starts_segment = before is None or isinstance(before, Separator)
        space = " " if part.spaced and not starts_segment else ""
        return self._tokens(texts, space, part)

    def _tokens(
        self, texts: Sequence[str], space: str = "", part: Text | None = None
    ) -> list[list[int]]:
        """The tokens of texts, with the prefix before each, as a template uses them."""
        taken = (self.text_prefix + (part.of(text) if part else text) for text in texts)
        read = tuple(space + text if text else "" for text in taken)
        if sum(map(len, read)) <= _MOST_REMEMBERED:
            return _remembered_ids(self._given, read)
        return _ids_of(self._tokenizer, read)

    def _place_of(self, which: str) -> tuple[Part | None, Text]:
        """The part of a text, and the part before it."""
        parts = self.template.parts
        return next(
            (before, part)
            for before, part in zip((None, *parts), parts, strict=False)
            if isinstance(part, Text) and part.which == which
        )

    def _lay_out_words(self) -> IntArray:
        """Tokenize the prompt's own words; keep their ids, and return the rows that [PRO]s copy.

        A [PRO] without a word starts from the row of the mask token, as in WARP.
        """
        self._words: dict[int, list[int]] = {}
        copied: list[int] = []
        before = None
        for place, part in enumerate(self.template.parts):
            if isinstance(part, Words):
                starts_segment = before is None or isinstance(before, Separator)
                text = part.text.lstrip() if starts_segment else part.text
                tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
            elif isinstance(part, Prompts):
                tokens = [self.special.mask] * part.count
            if isinstance(part, Prompts) or (isinstance(part, Words) and self.trainable_words):
                first = self.vocabulary + len(copied)
                self._words[place] = list(range(first, first + len(tokens)))
                copied.extend(tokens)
            elif isinstance(part, Words):
                self._words[place] = tokens
            before = part
        return np.array(copied, dtype=np.int64)

    def _fixed_length(self) -> int:
        parts = self.template.parts
        return (
            len(self.special.prefix)
            + len(self.special.suffix)
            + sum(isinstance(part, Separator) for part in parts) * len(self.special.between)
            + sum(map(len, self._words.values()))
            + sum(isinstance(part, Mask) for part in parts) * self.masks
        )

    def _assemble(self, tokens: dict[str, list[int]]) -> Encoding:
        kept = shares(self._room, {which: len(ids) for which, ids in tokens.items()})
        ids: list[int] = list(self.special.prefix)
        is_text = [False] * len(ids)
        border = None
        output = 0  # A template without a mask is one that begins with [CLS].
        for place, part in enumerate(self.template.parts):
            if isinstance(part, Text):
                piece = tokens[part.which][: kept[part.which]]
            elif isinstance(part, Words | Prompts):
                piece = self._words[place]
            elif isinstance(part, Mask):
                output = len(ids)
                piece = [self.special.mask] * self.masks
            else:
                piece = list(self.special.between)
                border = len(ids) + len(piece)
            ids.extend(piece)
            is_text.extend([isinstance(part, Text)] * len(piece))
        ids.extend(self.special.suffix)
        is_text.extend([False] * len(self.special.suffix))
        types = np.zeros(len(ids), dtype=np.int64)
        if border is not None:
            types[border:] = 1
        return Encoding(
            ids=np.array(ids, dtype=np.int64),
            types=types,
            is_text=np.array(is_text, dtype=bool),
            output=output,
            shortened=any(kept[which] < len(tokens[which]) for which in tokens),
        )


@lru_cache(maxsize=4)  # Layouts only use it to encode, and a sweep makes thousands of them.
def _plain_copy(tokenizer: str) -> Tokenizer:
    """A copy that neither cuts nor pads, and to which special tokens in a text are text."""
    facts = json.loads(tokenizer)
    if facts["model"]["type"] == "Unigram":
        # Such a model finds any piece of its vocabulary in a text, special tokens as well. A text
        # has "▁" in the place of spaces by then, so a piece with a space in it is never found.
        hidden = {t["content"]: f" {t['content']}" for t in facts["added_tokens"] if t["special"]}
        for token in facts["added_tokens"]:
            token["content"] = hidden.get(token["content"], token["content"])
        vocabulary = facts["model"]["vocab"]
        facts["model"]["vocab"] = [[hidden.get(p, p), score] for p, score in vocabulary]
    copy = Tokenizer.from_str(json.dumps(facts))
    copy.no_truncation()
    copy.no_padding()
    copy.encode_special_tokens = True
    return copy


def _ids_of(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    return [item.ids for item in encoded]


@lru_cache(maxsize=8)
def _remembered_ids(tokenizer: str, texts: tuple[str, ...]) -> list[list[int]]:
    """The same, once: a sweep trains on the same examples again and again."""
    return _ids_of(_plain_copy(tokenizer), texts)


def _whole_words(text: str, start: int, stop: int) -> str:
    """A part of a text, with the words that it begins or ends within.

    >>> _whole_words("my parcel is late", 5, 11)
    'parcel is'
    """
    while start > 0 and not text[start - 1].isspace() and not text[start].isspace():
        start -= 1
    while stop < len(text) and not text[stop].isspace() and not text[stop - 1].isspace():
        stop += 1
    return text[start:stop].strip()


def window_starts(n: int, room: int, most: int) -> list[int]:
    """Where windows of ``room`` tokens start so that they cover ``n``, or the first they can.

    They are evenly spaced, and two neighbours share at least a quarter of their tokens.

    >>> window_starts(18, room=8, most=10)
    [0, 5, 10]
    >>> window_starts(100, room=8, most=3)
    [0, 6, 12]
    """
    step = max(1, room - room // 4)
    count = min(most, 1 + -(-(n - room) // step))
    last = min(n - room, (count - 1) * step)
    return [last * place // max(1, count - 1) for place in range(count)]


def shares(room: int, lengths: dict[str, int]) -> dict[str, int]:
    """How many tokens each text keeps: the longer one is shortened first, down to the shorter.

    >>> shares(10, {"a": 4, "b": 20})
    {'a': 4, 'b': 6}
    >>> shares(10, {"a": 30, "b": 20})
    {'a': 5, 'b': 5}
    >>> shares(9, {"a": 30})
    {'a': 9}
    """
    if sum(lengths.values()) <= room:
        return lengths
    if len(lengths) == 1:
        return dict.fromkeys(lengths, room)
    (first, a), (second, b) = lengths.items()
    half = room // 2
    if a <= half:
        return {first: a, second: room - a}
    if b <= room - half:
        return {first: room - b, second: b}
    return {first: room - half, second: half}
