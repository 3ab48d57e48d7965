import pytest
import torch

from cptuning.backbone.shared_rows import SharedRows


def mask_of(lengths):
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()


def test_every_token_keeps_its_value_and_its_position():
    mask = mask_of([5, 2, 7, 1, 3])
    shared = SharedRows(mask, row_tokens=9)
    values = torch.arange(mask.numel()).view_as(mask) + 1
    texts, columns = mask.nonzero(as_tuple=True)
    moved = shared.moved(texts, columns)
    assert torch.equal(shared.spread(values)[moved], values[texts, columns])
    assert torch.equal(shared.positions[moved], columns)
    assert len({(int(r), int(c)) for r, c in zip(*moved, strict=True)}) == len(texts)


def test_a_token_sees_its_own_text_and_nothing_else():
    mask = mask_of([5, 2, 7, 1, 3])
    shared = SharedRows(mask, row_tokens=9)
    texts, columns = mask.nonzero(as_tuple=True)
    rows, places = shared.moved(texts, columns)
    for text, row, place in zip(texts, rows, places, strict=True):
        seen = shared.attention[row, 0, place].nonzero().squeeze(1).tolist()
        assert seen == places[texts == text].tolist()


def test_padding_sees_something_so_that_no_softmax_is_empty():
    assert SharedRows(mask_of([6, 5, 5, 1]), row_tokens=6).attention.any(dim=-1).all()


@pytest.mark.parametrize("lengths", [[4], [3, 3, 3], [1] * 40, [50, 1, 1, 1], list(range(10, 50))])
def test_there_is_little_padding(lengths):
    shape = SharedRows(mask_of(lengths), row_tokens=32).positions.shape
    assert shape.numel() <= max(mask_of(lengths).shape[1], 1.25 * sum(lengths))


def test_texts_as_long_as_a_row_stay_alone():
    mask = mask_of([32, 32, 32])
    assert SharedRows(mask, row_tokens=8).positions.shape == (3, 32)
