"""What the model reads at a step: windows of running text, or sentences alone and in pairs.

Everything is drawn on the device from tensors that stay there, by a generator that starts afresh
from the seed and the step's number: a resumed run sees what an unbroken one would have seen.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pretraining.pairs import WORDS, LabelledPairs
from pretraining.tokens import Tokens
from pretraining.vocabulary import CLS, MASK, PAD, SEP, SPECIAL

IGNORED = -100
# How the second text of a pair comes from the first, and the words that tell it. The first word
# stands in "A [SEP] B these are [MASK] .", the second in "A ? [MASK] , [SEP] B", where the [SEP] is
# left out of every other row: some prompts make one text of a pair.
RELATIONS = {
    "same": ("same", "yes"),
    "part": ("part", "yes"),
    "altered": ("similar", "no"),
    "next": ("connected", "then"),
    "near": ("related", "also"),
    "other": ("different", "no"),
}
SAME, PART, ALTERED, NEXT, NEAR, OTHER = range(len(RELATIONS))


@dataclass(frozen=True)
class Batch:
    """Token ids with some masked, which tokens they were, and where."""

    ids: Tensor
    types: Tensor
    attended: Tensor | None
    """Where there is no padding; None: nowhere."""
    columns: Tensor
    """The masked columns of each row, the same number in every row."""
    targets: Tensor
    """What stood there; IGNORED where a row had too few tokens to mask."""
    has_relations: bool
    """Whether the last column is the mask of the pair prompt."""


@dataclass(frozen=True)
class Prompts:
    """The ids of the words around and at the mask of the two pair prompts."""

    after: Tensor
    """these are [MASK] ."""
    between: Tensor
    """? [MASK] ,"""
    answers: Tensor
    """One row a relation: the word at the first prompt's mask, at the second one's."""

    @classmethod
    def of(cls, vocabulary: dict[str, int], device: torch.device | str) -> "Prompts":
        """Look the words up; each must be one token."""
        words = {w for pair in RELATIONS.values() for w in pair} | {"these", "are", ".", "?", ","}
        if missing := sorted(words - vocabulary.keys()):
            raise ValueError(f"The vocabulary lacks {', '.join(missing)}.")

        def ids(text: str) -> list[int]:
            return [vocabulary[word] for word in text.split()]

        answers = [ids(" ".join(pair)) for pair in RELATIONS.values()]
        rows = ids("these are [MASK] ."), ids("? [MASK] ,"), answers
        return cls(*(torch.tensor(row, device=device) for row in rows))


class Drawer:
    """Draws batches from the tokens of a corpus."""

    def __init__(
        self,
        tokens: Tokens,
        vocabulary: dict[str, int],
        *,
        device: torch.device | str,
        seed: int,
        rate: float = 0.2,
        pairs: LabelledPairs | None = None,
    ) -> None:
        # int32: torch can't index with, or compare, every kind of unsigned number.
        self.ids = torch.from_numpy(tokens.ids.astype("int32")).to(device)
        self.starts = torch.from_numpy(tokens.starts).to(device)
        self.documents = torch.from_numpy(tokens.documents).to(device)
        self.prompts = Prompts.of(vocabulary, device)
        self.vocabulary_size = len(vocabulary)
        self.device, self.seed, self.rate = device, seed, rate
        self._generator = torch.Generator(device)
        self.pairs: tuple[Tensor, Tensor, Tensor] | None = None
        if pairs is not None:
            words = [[vocabulary[word] for word in both] for both in WORDS.values()]
            answers = torch.tensor(words)[torch.from_numpy(pairs.labels)]
            sides = torch.from_numpy(pairs.a), torch.from_numpy(pairs.b), answers
            self.pairs = tuple(tensor.to(device) for tensor in sides)  # type: ignore[assignment]

    def windows(self, step: int, rows: int, length: int) -> Batch:
        """Running text from the beginning of a sentence on, as long as the row; no padding."""
        self._begin(step)
        first = self.starts[self._below(len(self.starts), rows)]
        first = first.clamp(max=len(self.ids) - length)
        ids = self.ids[first[:, None] + torch.arange(length - 2, device=self.device)].long()
        ends = ids.new_tensor([CLS, SEP]).expand(rows, 2)
        ids = torch.cat([ends[:, :1], ids, ends[:, 1:]], dim=1)
        return self._masked(ids, torch.zeros_like(ids), None)

    def sentences(self, step: int, rows: int, length: int) -> Batch:
        """Half the rows are one or two sentences, the others pairs whose relation is a word.

        A row is laid out in columns, [CLS] A "? [MASK] ," [SEP] B "these are [MASK] ." [SEP], of
        which each kind of row has its own; those it has move together, the rest is padding.
        """
        self._begin(step)
        room = (length - 10) // 2
        relation = self._below(len(RELATIONS), rows)
        is_pair = self._chance(0.5, rows)
        after = self._chance(0.5, rows)
        apart = is_pair & (after | self._chance(0.5, rows))
        relation = torch.where(is_pair, relation, NEXT)
        sentence = self._below(len(self.starts) - 1, rows)
        a, has_a = self._texts(sentence, room)
        b, has_b, relation = self._second(sentence, relation, a, has_a)
        # A row of its own is one sentence, or two that follow each other.
        has_b &= (is_pair | ((relation == NEXT) & self._chance(0.5, rows)))[:, None]
        # Which of two texts is the changed one must not show in their order.
        turned = is_pair & self._chance(0.5, rows) & (relation != PART) & (relation != NEXT)
        a, b = torch.where(turned[:, None], b, a), torch.where(turned[:, None], a, b)
        has_a, has_b = (
            torch.where(turned[:, None], has_b, has_a),
            torch.where(turned[:, None], has_a, has_b),
        )
        answers = self.prompts.answers[relation]
        return self._laid_out((a, has_a), (b, has_b), answers, is_pair, after, apart)

    def labelled_pairs(self, step: int, rows: int) -> Batch:
        """Pairs whose label is a word at the mask of a prompt; tokens are masked as well."""
        assert self.pairs is not None
        self._begin(step)
        a, b, answers = self.pairs
        chosen = self._below(len(a), rows)
        a, b = a[chosen].long(), b[chosen].long()
        after = self._chance(0.5, rows)
        apart = after | self._chance(0.5, rows)
        every = torch.ones_like(after)
        return self._laid_out((a, a != PAD), (b, b != PAD), answers[chosen], every, after, apart)

    def _begin(self, step: int) -> None:
        self._generator.manual_seed(self.seed * 1_000_003 + step)

    def _below(self, n: int, *shape: int) -> Tensor:
        return torch.randint(n, shape, generator=self._generator, device=self.device)

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self._generator, device=self.device)

    def _chance(self, p: float, *shape: int) -> Tensor:
        return self._uniform(*shape) < p

    def _texts(self, sentence: Tensor, room: int) -> tuple[Tensor, Tensor]:
        """The tokens of each sentence, cut where there is no more room, and which are of it."""
        places = torch.arange(room, device=self.device)
        last = len(self.starts) - 1
        first, after = (
            self.starts[sentence.clamp(max=last)],
            self.starts[(sentence + 1).clamp(max=last)],
        )
        at = (first[:, None] + places).clamp(max=len(self.ids) - 1)
        ids = self.ids[at].long()
        return ids, (at < after[:, None]) & (ids != SEP)

    def _second(
        self, sentence: Tensor, relation: Tensor, a: Tensor, has_a: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The second texts; where a document ends too early for a relation, another one."""
        rows, room = a.shape
        distance = torch.where(relation == NEXT, 1, 2 + self._below(8, rows))
        follower = (sentence + distance).clamp(max=len(self.starts) - 1)
        elsewhere = self._below(len(self.starts) - 1, rows)
        in_document = self.documents[follower] == self.documents[sentence]
        from_text = relation >= NEXT
        relation = torch.where(from_text & ~in_document, OTHER, relation)
        found, has_found = self._texts(torch.where(relation == OTHER, elsewhere, follower), room)
        copied, has_copied = self._copies(a, has_a, relation)
        chosen = from_text[:, None]
        return (
            torch.where(chosen, found, copied),
            torch.where(chosen, has_found, has_copied),
            relation,
        )

    def _copies(self, a: Tensor, has_a: Tensor, relation: Tensor) -> tuple[Tensor, Tensor]:
        """The first texts again: turned round and thinned out, cut down to a part, or altered."""
        rows, room = a.shape
        places = torch.arange(room, device=self.device)
        count = has_a.sum(1, keepdim=True).clamp(min=1)
        # Turned round: the text from its middle on, then its beginning, for half of the rows.
        turn = (self._uniform(rows, 1) * count).long() * (self._uniform(rows, 1) < 0.5)
        turn = torch.where((relation == PART)[:, None], 0, turn)
        ids = a.gather(1, torch.where(places < count, (places + turn) % count, places))
        # Thinned out: up to three tokens in ten are left out.
        kept = self._uniform(rows, room) >= 0.3 * self._uniform(rows, 1)
        # A part: from three to seven tenths of the text, in one piece.
        share = 0.3 + 0.4 * self._uniform(rows, 1)
        begin = (self._uniform(rows, 1) * (1 - share) * count).floor()
        part = (places >= begin) & (places < begin + share * count)
        # Altered: about a fifth of the tokens are others, and at least one.
        other = self.ids[self._below(len(self.ids), rows, room)].long()
        other = torch.where(other < len(SPECIAL), ids, other)
        chance = self._uniform(rows, room).masked_fill(~has_a, 2.0)
        replaced = (chance < 0.2) | (chance == chance.amin(1, keepdim=True))
        ids = torch.where((relation == ALTERED)[:, None] & replaced, other, ids)
        return ids, has_a & torch.where((relation == PART)[:, None], part, kept)

    def _laid_out(
        self,
        first: tuple[Tensor, Tensor],
        second: tuple[Tensor, Tensor],
        answers: Tensor,
        is_pair: Tensor,
        after: Tensor,
        apart: Tensor,
    ) -> Batch:
        (a, has_a), (b, has_b) = first, second
        rows = len(a)
        p = self.prompts
        always = torch.ones_like(is_pair)
        blocks = [
            # ids, which rows have them, whether they are of the second segment
            (a.new_full((rows, 1), CLS), always[:, None], False),
            (a, has_a, False),
            (p.between.expand(rows, -1), (is_pair & ~after)[:, None].expand(-1, 3), False),
            (a.new_full((rows, 1), SEP), apart[:, None], False),
            (b, has_b, True),
            (p.after.expand(rows, -1), (is_pair & after)[:, None].expand(-1, 4), True),
            (a.new_full((rows, 1), SEP), always[:, None], True),
        ]
        ids = torch.cat([block for block, _, _ in blocks], dim=1)
        has = torch.cat([has for _, has, _ in blocks], dim=1)
        types = torch.cat([torch.full_like(block, second) for block, _, second in blocks], dim=1)
        types = types * apart[:, None]  # one segment where there is no [SEP] between
        order = torch.argsort(~has, dim=1, stable=True)
        ids, has, types = (t.gather(1, order) for t in (ids, has, types))
        ids, types = ids.masked_fill(~has, PAD), types.masked_fill(~has, 0)
        answer = answers.gather(1, (~after).long()[:, None])
        return self._masked(ids, types, has, torch.where(is_pair[:, None], answer, IGNORED))

    def _masked(
        self, ids: Tensor, types: Tensor, attended: Tensor | None, answer: Tensor | None = None
    ) -> Batch:
        """Mask tokens of the text, 80 % by [MASK], 10 % by others, 10 % as they are."""
        rows, length = ids.shape
        count = max(1, round(self.rate * length))
        # The mask of a prompt is there already and has its own target.
        prompt = (ids == MASK).float().argmax(1, keepdim=True)
        chance = self._uniform(rows, length).masked_fill(ids < len(SPECIAL), -1.0)
        if attended is not None:  # As many of a short row's tokens as of a long one's.
            allowed = self.rate * attended.sum(1, keepdim=True)
            rank = chance.argsort(1, descending=True).argsort(1)
            chance = chance.masked_fill(rank >= allowed, -1.0)
        best, columns = chance.topk(count, dim=1)
        targets = ids.gather(1, columns).masked_fill(best < 0, IGNORED)
        kind = self._uniform(rows, count)
        drawn = self._below(self.vocabulary_size, rows, count)
        original = ids.gather(1, columns)
        masked = torch.where(kind < 0.8, MASK, torch.where(kind < 0.9, drawn, original))
        ids = ids.scatter(1, columns, torch.where(best < 0, original, masked))
        if answer is not None:
            columns, targets = torch.cat([columns, prompt], 1), torch.cat([targets, answer], 1)
        return Batch(ids, types, attended, columns, targets, answer is not None)
