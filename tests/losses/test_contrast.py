"""The softmax core: both forms, both reductions, rows that lack something."""

import pytest
import torch
from tests.losses.slow import autograd, close

from cptuning.errors import CPTuningError
from cptuning.losses.contrast import contrast

# One positive and no negative, two negatives and no positive, nothing at all, two of each.
POSITIVE = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]]).bool()
NEGATIVE = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 1, 1]]).bool()
LOGITS = torch.log(torch.arange(1.0, 17.0, dtype=torch.float64)).view(4, 4)


@pytest.mark.parametrize(
    ("form", "reduction", "last"),
    [
        ("sum_log", "sum", -torch.log(torch.tensor(13 / 58 * 14 / 58, dtype=torch.float64))),
        ("sum_log", "mean", -torch.log(torch.tensor(13 / 58 * 14 / 58, dtype=torch.float64)) / 2),
        ("log_sum", "sum", -torch.log(torch.tensor(27 / 58, dtype=torch.float64))),
        ("log_sum", "mean", -torch.log(torch.tensor(27 / 58, dtype=torch.float64))),
    ],
)
def test_value_by_hand_and_zero_for_rows_that_lack_something(form, reduction, last):
    values = contrast(LOGITS, POSITIVE, NEGATIVE, form=form, reduction=reduction)
    close(values, torch.stack([torch.zeros_like(last)] * 3 + [last]))


@pytest.mark.parametrize("form", ["sum_log", "log_sum"])
def test_rows_that_lack_something_have_a_gradient_of_zero_and_no_nan_on_the_way(form):
    with torch.autograd.set_detect_anomaly(True):
        gradient = autograd(
            lambda x: contrast(x, POSITIVE, NEGATIVE, form=form, reduction="sum").sum(), LOGITS
        )
    assert torch.equal(gradient[:3], torch.zeros(3, 4, dtype=torch.float64))
    assert (gradient[3, 2:] > 0).all()


def test_a_small_loss_of_the_log_sum_form_keeps_its_digits():
    logits = torch.tensor([[1000.0, 970.0]])
    positive, negative = torch.tensor([[True, False]]), torch.tensor([[False, True]])
    value = contrast(logits, positive, negative, form="log_sum", reduction="sum")
    close(value, torch.exp(torch.tensor([-30.0])), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "log", "reduction": "sum"}, "form is 'log': use one of sum_log, log_sum."),
        ({"form": "sum_log", "reduction": "max"}, "reduction is 'max': use one of sum, mean."),
    ],
)
def test_an_unknown_choice_is_refused_with_the_choices(settings, message):
    with pytest.raises(CPTuningError, match=message):
        contrast(LOGITS, POSITIVE, NEGATIVE, **settings)
