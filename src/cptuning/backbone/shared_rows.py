"""Short texts that share a row of a batch, without attending to each other: almost no padding."""

import torch
from torch import Tensor

# The least length of a row. In much longer ones attention, which is computed between all tokens of
# a row and then ignored between texts, would cost more than the padding that is saved.
ROW_TOKENS = 128


class SharedRows:
    """Where the tokens of a padded batch stand when texts are laid end to end in fewer rows.

    >>> mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]])
    >>> shared = SharedRows(mask, row_tokens=4)
    >>> shared.spread(torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]]))
    tensor([[1, 2, 3, 4],
            [5, 6, 7, 8]])
    >>> shared.gathered(torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]))
    tensor([[1, 2, 3, 4],
            [5, 6, 0, 0],
            [7, 8, 0, 0]])
    >>> shared.positions
    tensor([[0, 1, 2, 3],
            [0, 1, 0, 1]])
    >>> shared.attention[1, 0].int()
    tensor([[1, 1, 0, 0],
            [1, 1, 0, 0],
            [0, 0, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)
    """

    def __init__(self, attention_mask: Tensor, row_tokens: int = ROW_TOKENS) -> None:
        lengths = attention_mask.sum(dim=1).tolist()
        filled = [0] * max(1, round(sum(lengths) / max(row_tokens, *lengths)))
        row, offset = [0] * len(lengths), [0] * len(lengths)
        # The longest first, each into the emptiest row: the rows end up about equally full.
        for text in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
            row[text] = filled.index(min(filled))
            offset[text] = filled[row[text]]
            filled[row[text]] += lengths[text]
        self._shape = (len(filled), max(filled))
        self._row, self._offset = torch.tensor(row), torch.tensor(offset)
        self._tokens = attention_mask.nonzero(as_tuple=True)
        self._padded = attention_mask.shape
        numbers = torch.arange(attention_mask.shape[1]).expand_as(attention_mask)
        self.positions = self.spread(numbers)
        """Of each token in its own text."""
        owner = self.spread(torch.arange(1, len(lengths) + 1)[:, None].expand_as(attention_mask))
        self.attention = (owner[:, :, None] == owner[:, None, :]).unsqueeze(1)
        """Which token sees which: (rows, 1, length, length), true inside a text."""

    def moved(self, texts: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Rows and columns here of positions in the padded batch."""
        return self._row[texts], self._offset[texts] + columns

    def spread(self, values: Tensor) -> Tensor:
        """The values (texts, length, ...) of the padded batch as they stand here, or zeros."""
        rows = values.new_zeros(self._shape + values.shape[2:])
        return rows.index_put(self.moved(*self._tokens), values[self._tokens])

    def gathered(self, values: Tensor) -> Tensor:
        """The inverse of :meth:`spread`: values that stand here, back in the padded batch."""
        padded = values.new_zeros(self._padded + values.shape[2:])
        return padded.index_put(self._tokens, values[self.moved(*self._tokens)])
