"""Model folders: found, replaced as a whole, and checked before anything in them is opened."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from cptuning.errors import CPTuningError
from cptuning.files.atomic import require_writable, restore, whole_folder
from cptuning.files.places import cached_file
from cptuning.input_limits import LARGEST_MODEL
from cptuning.storage.schema import FACTS_FILE, FORMAT, TAGGER, ModelFacts

_MOST_FILES = 1000
_MOST_FACTS_BYTES = 16_000_000


def read_facts(folder: Path) -> ModelFacts:
    """What the folder of a classifier says about it, without loading it.

    >>> read_facts(Path("no-such-folder"))
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no model folder 'no-such-folder': ...
    """
    stored = stored_facts(folder)
    if stored.get("method") == TAGGER:
        raise CPTuningError(
            f"The model {folder} is a tagger, which finds spans: use `cptuning tag`, or load it "
            "with cptuning.load."
        )
    with damage_named(folder):
        return ModelFacts.from_json(stored)


def is_tagger(folder: Path) -> bool:
    """Whether a model folder holds a tagger."""
    return stored_facts(folder).get("method") == TAGGER


@contextmanager
def damage_named(folder: Path) -> Iterator[None]:
    """Inside, an error in what a folder says about its model names the file."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        why = str(getattr(error, "strerror", None) or error).removesuffix(".")
        raise CPTuningError(
            f"{folder / FACTS_FILE} is damaged ({why}): save the model again."
        ) from error


def stored_facts(folder: Path) -> dict[str, Any]:
    """What a model folder says about itself, of whatever kind it is, in a format that is known."""
    path = folder / FACTS_FILE
    try:
        restore(_place(folder))
        if not folder.is_dir():
            raise CPTuningError(
                f"There is no model folder {str(folder)!r}: "
                "make one with `cptuning fit` or a classifier's save."
            )
        if not os.path.lexists(path):
            raise CPTuningError(
                f"The folder {folder} does not hold a CP-Tuning model (no {FACTS_FILE})."
            )
        _refuse_strange_files(folder)
    except OSError as error:
        raise CPTuningError(f"{folder} can't be read: {error.strerror or error}.") from error
    with damage_named(folder):
        if path.stat().st_size > _MOST_FACTS_BYTES:
            raise ValueError("it is too large")
        stored = json.loads(path.read_text("utf-8"), parse_constant=_refuse_constant)
        number = stored.get("format") if isinstance(stored, dict) else None
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError("its format is not a whole number")
    if number <= FORMAT:
        return dict(stored)
    raise CPTuningError(
        f"The model {folder} was written by a newer cptuning (format {str(number)[:20]}, this one "
        f"reads up to {FORMAT}): pip install --upgrade cptuning."
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it holds {name}, which is not JSON")


def _refuse_strange_files(folder: Path) -> None:
    """A model folder may be untrusted: only its own plain files are ever opened."""
    count, size, most = 0, 0, LARGEST_MODEL.value()
    for parent, folders, names in os.walk(folder, followlinks=False):
        for name in (*folders, *names):
            path = Path(parent, name)
            found = cached_file(path, folder).lstat()
            if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                raise CPTuningError(
                    f"The model folder {folder} holds {path.name!r}, which is neither a file nor a "
                    "folder: a model has no links, pipes or devices in it."
                )
            count += 1
            if count > _MOST_FILES:
                raise CPTuningError(f"The model folder {folder} holds more than {count} files.")
            size += found.st_size
            if size > most:
                raise CPTuningError(
                    f"The model folder {folder} holds more than {most} bytes: set "
                    f"{LARGEST_MODEL.variable} to more if they are all its own."
                )


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to write a model to, that takes the place of the wanted one when it is complete.

    An earlier model in that place is replaced; anything else is never touched.
    """
    try:
        _require_free(folder)
        place = _place(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(place) as new:
            yield new
            _open_to_readers(new)
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        raise CPTuningError(f"{folder.absolute()} can't be written: {why}.") from error


def check_place(folder: Path) -> None:
    """Refuse a place that a model can't be saved to: before hours of training, not after."""
    try:
        _require_free(folder)
        place = _place(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        require_writable(place)
    except OSError as error:
        raise CPTuningError(f"{folder.absolute()} can't be written: {error.strerror}.") from error


def _place(folder: Path) -> Path:
    """Where a folder really is: what a link points at is replaced, not the link."""
    return Path(os.path.realpath(folder))


def _require_free(folder: Path) -> None:
    if folder.is_dir() and ((folder / FACTS_FILE).is_file() or not any(folder.iterdir())):
        return
    if os.path.lexists(folder):
        raise CPTuningError(
            f"{folder.absolute()} exists and is not a CP-Tuning model: choose another place."
        )


def _open_to_readers(folder: Path) -> None:
    """Let everyone read the files who may read the folder: safetensors keeps its files private."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
