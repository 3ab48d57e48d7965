import inspect
from dataclasses import fields, replace

import numpy as np
import pytest

from cptuning import CPTuningClassifier
from cptuning.errors import CPTuningError
from cptuning.methods.cp_tuning_settings import PRESETS, CPTuningSettings, settings_for


def test_the_paper_preset_holds_the_papers_own_numbers():
    paper = settings_for("paper", pair=False)
    assert paper.template == "{a} it is [MASK]"
    assert settings_for("paper", pair=True).template == "{a} ? [MASK] {b}"
    assert paper.tau_n == 1.0
    assert paper.xi * paper.tau_n == 2.0
    assert paper.contrastive_weight == 0.5
    assert paper.margin == 0.3
    assert (paper.inference, paper.k) == ("knn", 3)
    assert (paper.optimizer, paper.reduction, paper.batches) == ("adam", "sum", "uniform")
    assert paper.learning_rate in (1e-5, 3e-5, 5e-5)
    assert paper.batch_size in (4, 8, 16, 32)
    assert paper.mlm_rate == 0.15
    assert not paper.centred


def test_the_released_preset_is_the_authors_code_not_their_paper():
    released = settings_for("released", pair=False)
    assert (released.loss, released.margin, released.tau_n) == ("circle", 0.4, 1 / 64)
    assert released.contrastive_weight == 1.0, "no masked LM"
    assert (released.inference, released.k) == ("knn", 1)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("pair", [False, True])
def test_every_preset_is_valid_for_texts_and_for_pairs(preset, pair):
    assert settings_for(preset, pair=pair).template.count("{b}") == pair


def test_every_setting_is_a_parameter_of_the_classifier():
    parameters = inspect.signature(CPTuningClassifier).parameters
    assert {field.name for field in fields(CPTuningSettings)} <= set(parameters)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"margin": -0.1}, "margin is -0.1: it must be at least 0."),
        ({"margin": float("nan")}, "margin is nan: it must be a finite number."),
        ({"tau_n": 0}, "tau_n is 0: it must be above 0."),
        ({"contrastive_weight": 1.5}, "contrastive_weight is 1.5: it must be between 0 and 1."),
        ({"batch_size": 1}, "batch_size is 1: it must be at least 2."),
        ({"steps": -1}, "steps is -1: it must be at least 0."),
        ({"loss": "mse"}, "loss is 'mse': choose one of 'pccl', "),
        ({"optimizer": "sgd"}, "optimizer is 'sgd': choose one of 'adam', 'adamw'."),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(change, sentence):
    with pytest.raises(CPTuningError) as caught:
        settings_for("default", pair=False, **change)
    assert str(caught.value).startswith(sentence)


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(CPTuningError, match="choose one of paper, default, instant, released"):
        settings_for("best", pair=False)


def test_the_default_has_settings_of_its_own_for_single_texts_of_more_than_two_classes():
    two, three = (settings_for("default", pair=False, classes=n) for n in (2, 3))
    assert two == PRESETS["default"]["single"] != three == PRESETS["default"]["many"]
    assert settings_for("default", pair=False, classes=150) == three
    assert settings_for("default", pair=True, classes=3) == PRESETS["default"]["pair"]
    assert settings_for("default", pair=False, classes=3, tau_n=0.7).tau_n == 0.7
    for preset in ("paper", "released"):
        assert settings_for(preset, pair=False, classes=3) == PRESETS[preset]["single"]


def test_more_examples_get_more_steps_unless_the_steps_are_named():
    default = settings_for("default", pair=False)
    assert default.scaled_to(32) == default
    many = default.scaled_to(3200)
    assert many.steps == default.most_steps == 150
    assert many.steps / many.evaluate_every == default.steps / default.evaluate_every
    assert replace(default, most_steps=1000).scaled_to(3200).steps == 1000
    assert settings_for("default", pair=False, steps=7).scaled_to(10_000).steps == 7
    assert settings_for("default", pair=False, steps=7, epochs=2).scaled_to(160).steps == 20
    assert settings_for("paper", pair=False).scaled_to(10_000).steps == 1000


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": "60"}, "steps is '60': it must be a whole number."),
        ({"steps": 2.5}, "steps is 2.5: it must be a whole number."),
        ({"k": True}, "k is True: it must be a whole number."),
        ({"margin": "wide"}, "margin is 'wide': it must be a number."),
        ({"prompt_learning_rate": "fast"}, "prompt_learning_rate is 'fast': it must be a number."),
        ({"centred": 1}, "centred is 1: it must be true or false."),
        ({"template": 3}, "template is 3: it must be a text."),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused_in_one_sentence(change, sentence):
    with pytest.raises(CPTuningError) as refusal:
        settings_for("default", pair=False, **change)
    assert str(refusal.value) == sentence


def test_numpys_numbers_are_numbers():
    changed = settings_for("default", pair=False, steps=np.int64(3), margin=np.float32(0.5))
    assert (changed.steps, changed.margin) == (3, 0.5)


@pytest.mark.parametrize("preset", PRESETS)
def test_our_own_presets_read_single_texts_to_their_end(preset):
    own = preset in ("default", "instant")
    assert settings_for(preset, pair=False).long_texts == ("windows" if own else "truncate")
    assert settings_for(preset, pair=False, pooled=True).windows == (32 if own else 1)
    assert settings_for(preset, pair=True).long_texts == "truncate"
