"""Zip files of visitors: models are opened, everything else is refused and leaves nothing."""

import stat
import struct
import zipfile

import pytest
from tests.app.conftest import FILMS, GOOD

from cptuning.app import downloads, opened_models
from cptuning.app.opened_models import unpack
from cptuning.app.session import Session
from cptuning.app.user_examples import Example
from cptuning.errors import CPTuningError


@pytest.fixture
def archive(trained):
    return downloads.model_file(trained)


def test_a_downloaded_model_is_opened_with_its_examples(archive, settings):
    session = Session(settings)
    session.open_model(archive)
    assert session.examples == FILMS
    assert session.answer(GOOD[0]).label == "good"
    assert session.review is None
    session.add([Example("so so", "fair")])
    assert session.answer("so so").label == "fair"
    assert session.done == "1 example added."
    session.undo()
    session.undo()
    assert session.examples == []
    session.close()


def zipped(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "name", ["../evil", "model/../../evil", "/tmp/evil", "C:\\evil", "model\\..\\evil", "c:evil"]
)
def test_names_that_lead_out_of_the_folder_are_refused(tmp_path, name):
    path = zipped(tmp_path / "bad.zip", {"model/cptuning.json": "{}", name: "x"})
    with pytest.raises(CPTuningError, match=r"^bad\.zip holds .* which leads out of its folder"):
        unpack(path, tmp_path / "here" / "folder")
    assert not list(tmp_path.rglob("*evil*"))


def test_links_are_refused(tmp_path):
    info = zipfile.ZipInfo("model/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = zipped(tmp_path / "bad.zip", {"model/cptuning.json": "{}", info: "/etc/passwd"})
    with pytest.raises(CPTuningError, match="leads out"):
        unpack(path, tmp_path / "folder")


@pytest.mark.parametrize(
    ("claimed", "sentence"), [(1_000_000, "is too large when unpacked"), (100, "is not a zip file")]
)
def test_what_comes_out_is_counted_whatever_the_file_says(tmp_path, monkeypatch, claimed, sentence):
    monkeypatch.setattr(opened_models, "_MOST_BYTES", 10_000)
    path = zipped(tmp_path / "bomb.zip", {"cptuning.json": "{}", "zeros": b"\0" * 1_000_000})
    size = struct.pack("<I", 1_000_000)
    path.write_bytes(path.read_bytes().replace(size, struct.pack("<I", claimed)))
    session = Session()
    with pytest.raises(CPTuningError, match=rf"^bomb\.zip {sentence}"):
        session.open_model(path)
    assert list(session.file("x").parent.glob("opened-*")) == []
    assert session.examples == []
    session.close()


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"readme.txt": "x"}, "bad.zip does not hold a CP-Tuning model"),
        ({f"model/{n}": "x" for n in range(201)}, "bad.zip holds more than 200 files"),
        ({"model/cptuning.json": "{}"}, "is damaged"),
    ],
)
def test_other_zip_files_are_refused(tmp_path, entries, sentence):
    session = Session()
    with pytest.raises(CPTuningError, match=sentence) as refused:
        session.open_model(zipped(tmp_path / "bad.zip", entries))
    assert str(session.file("x").parent) not in str(refused.value)
    session.close()


def test_a_file_that_is_no_zip_file_is_refused(tmp_path):
    path = tmp_path / "bad.zip"
    path.write_bytes(b"PK\3\4 not really")
    with pytest.raises(CPTuningError, match=r"^bad\.zip is not a zip file"):
        unpack(path, tmp_path / "folder")


def test_a_model_of_another_method_is_refused(tmp_path, tiny, monkeypatch):
    from cptuning import make_classifier

    rival = make_classifier(
        "fine-tuning", backbone=str(tiny("bert")), steps=1, validation="none", verbose=False
    )
    rival.fit([e.text for e in FILMS], [e.label for e in FILMS]).save(tmp_path / "model")
    files = (tmp_path / "model").rglob("*")
    entries = {str(f.relative_to(tmp_path / "model")): f.read_bytes() for f in files if f.is_file()}
    with pytest.raises(CPTuningError, match="use it with `cptuning predict`"):
        Session().open_model(zipped(tmp_path / "rival.zip", entries))


def test_a_model_of_label_sets_is_opened_as_one(session, settings):
    sets = [("x", "y"), ("x",), ("y",), ()]
    session.add([Example(text, labels) for text, labels in zip("abcd", sets, strict=True)])
    session.read()
    another = Session(settings)
    another.open_model(downloads.model_file(session))
    assert another.several
    assert another.examples == session.examples
    assert another.answer("a").label == ("x", "y")
    another.close()
