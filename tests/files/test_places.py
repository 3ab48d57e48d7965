from pathlib import Path

import pytest
from tests.tiny import SINGLES

import cptuning
from cptuning import CPTuningClassifier
from cptuning.backbone import load_backbone
from cptuning.errors import CPTuningError
from cptuning.files.places import as_path
from cptuning.storage import load_predictor

NO_PLACES = (None, 5, b"model", ["model"], "", "a\0b")


@pytest.mark.parametrize("given", ["model", Path("model")])
def test_texts_and_paths_are_places(given):
    assert as_path(given, "folder") == Path("model")


@pytest.mark.parametrize("given", NO_PLACES)
def test_what_is_no_place_is_named_in_one_sentence(given):
    with pytest.raises(CPTuningError, match=r"^folder .*: give "):
        as_path(given, "folder")


@pytest.fixture(scope="module")
def fitted():
    return CPTuningClassifier(preset="instant").fit(list(SINGLES), [1, 1, 0, 0])


@pytest.mark.parametrize("given", NO_PLACES)
def test_every_place_of_the_interface_is_checked(fitted, given):
    for use in (cptuning.load, load_predictor, fitted.save, fitted.export):
        with pytest.raises(CPTuningError, match="folder"):
            use(given)
    for use in (cptuning.load, fitted.save):
        with pytest.raises(CPTuningError, match="File name too long"):
            use("a" * 300)


@pytest.mark.parametrize("given", [5, b"model", ["model"], "", "a\0b"])
def test_checkpoints_transfer_and_backbones_are_checked(tiny, given):
    texts, labels = list(SINGLES), [1, 1, 0, 0]
    quick = {"backbone": str(tiny("bert")), "steps": 1, "verbose": False}
    with pytest.raises(CPTuningError, match="checkpoint_dir"):
        CPTuningClassifier(**quick, checkpoint_dir=given).fit(texts, labels)
    with pytest.raises(CPTuningError, match="init_from"):
        CPTuningClassifier(**quick).fit(texts, labels, init_from=given)
    with pytest.raises(CPTuningError, match=r"backbone|folder"):
        load_backbone(given)


def test_no_backbone_is_one_sentence():
    with pytest.raises(CPTuningError, match="backbone is None"):
        CPTuningClassifier(None).fit(list(SINGLES), [1, 1, 0, 0])
