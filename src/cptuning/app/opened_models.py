"""Models that visitors bring: zip files of which nothing is trusted."""

import shutil
import stat
import zipfile
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from cptuning.app.user_examples import SEPARATOR, Example, Label
from cptuning.data import LabelSpace, MultiLabelSpace
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningClassifier
from cptuning.inference import EmbeddingPredictor, MultiLabelPredictor
from cptuning.registry import load
from cptuning.storage import FACTS_FILE

_MOST_FILES = 200
_MOST_BYTES = 2_000_000_000
_CHUNK = 1 << 20


def opened_model(archive: Path, folder: Path) -> tuple[CPTuningClassifier, list[Example]]:
    """The model in a zip file and its examples; its files are unpacked to a new folder.

    Nothing in it is unpickled: a model folder is checked before it is used.
    """
    try:
        unpack(archive, folder)
        return _opened(folder)
    except CPTuningError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the model in a zip file, or refuse the file in one sentence.

    Refused are links, names that lead out of the folder, too many files and too many bytes: those
    that come out are counted, whatever the file says about itself.
    """
    name = archive.name
    try:
        with zipfile.ZipFile(archive) as file:
            infos = [info for info in file.infolist() if not info.is_dir()]
            if len(infos) > _MOST_FILES:
                raise CPTuningError(
                    f"{name} holds more than {_MOST_FILES} files: it is not a model."
                )
            parts = {info: _parts(info, name) for info in infos}
            facts = [path for path in parts.values() if path[-1] == FACTS_FILE]
            if not facts:
                raise CPTuningError(
                    f"{name} does not hold a CP-Tuning model (no {FACTS_FILE}): choose the zip "
                    "file that was downloaded from this page."
                )
            root, left = min(facts, key=len)[:-1], _MOST_BYTES
            for info, path in parts.items():
                if path[: len(root)] == root:
                    target = folder.joinpath(*path[len(root) :])
                    target.parent.mkdir(parents=True, exist_ok=True)
                    left = _extract(file, info, target, left, name)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise CPTuningError(f"{name} is not a zip file that can be read ({error}).") from error


def _parts(info: zipfile.ZipInfo, name: str) -> tuple[str, ...]:
    """The folders and the name of a file in the archive."""
    path = PurePosixPath(info.filename)
    is_link = stat.S_ISLNK(info.external_attr >> 16)
    leads_out = path.is_absolute() or ".." in path.parts or not path.parts
    if is_link or leads_out or any(sign in info.filename for sign in ("\\", ":", "\0")):
        raise CPTuningError(
            f"{name} holds {info.filename[:80]!r}, which leads out of its folder: it is not a "
            "model that was downloaded from this page."
        )
    return path.parts


def _extract(
    file: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, left: int, name: str
) -> int:
    """Write one file of the archive; returns how many bytes are left to be written."""
    with file.open(info) as source, target.open("xb") as sink:
        while chunk := source.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise CPTuningError(f"{name} is too large when unpacked: at most 2 GB are taken.")
            sink.write(chunk)
    return left


def _opened(folder: Path) -> tuple[CPTuningClassifier, list[Example]]:
    classifier = load(folder)
    predictor = classifier.predictor_
    if not isinstance(classifier, CPTuningClassifier) or not isinstance(
        predictor, EmbeddingPredictor
    ):
        raise CPTuningError(
            "This model does not label texts by similar examples, so the page can't show it: use "
            "it with `cptuning predict`."
        )
    classes: tuple[Hashable, ...] = tuple(str(label) for label in predictor.label_space.classes)
    if len(set(classes)) < len(classes):
        raise CPTuningError("Two classes of this model are written alike: it can't be shown.")
    several = isinstance(predictor, MultiLabelPredictor)
    if several and any(SEPARATOR in str(name) for name in classes):
        raise CPTuningError(
            f"A label of this model contains {SEPARATOR!r}, which joins labels on the page: use it "
            "with `cptuning predict`."
        )
    space = MultiLabelSpace(classes) if several else LabelSpace(classes)
    classifier.predictor_ = replace(predictor, label_space=space)
    classifier.verbose = False
    support = predictor.support
    labels: list[Label] = [
        tuple(sorted(label)) if several else str(label)
        for label in space.decode(support.labels).tolist()
    ]
    return classifier, list(map(Example, support.examples, labels))
