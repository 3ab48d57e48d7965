"""Examples as the model reads them; if there are many, they are laid out only when needed."""

from collections.abc import Sequence
from typing import overload

from cptuning.data import Examples
from cptuning.prompting.layout import Encoding, Layout

# An encoding takes about a kilobyte; laying out a batch takes less than a hundredth of a step.
MOST_KEPT = 4096


class LaidOut(Sequence[Encoding]):
    """The encodings of examples: kept if they are few, otherwise laid out again each time."""

    def __init__(self, layout: Layout, examples: Examples, most_kept: int = MOST_KEPT) -> None:
        self._layout, self._examples = layout, examples
        self._kept = layout.encode(examples) if len(examples) <= most_kept else None

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, place: int) -> Encoding: ...

    @overload
    def __getitem__(self, place: slice) -> list[Encoding]: ...

    def __getitem__(self, place: int | slice) -> Encoding | list[Encoding]:
        if self._kept is not None:
            return self._kept[place]
        if isinstance(place, slice):
            return self._layout.encode(self._examples.take(range(len(self))[place]))
        return self._layout.encode(self._examples.take([place]))[0]
