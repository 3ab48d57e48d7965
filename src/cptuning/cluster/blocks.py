"""A folder of Parquet files as blocks of work, and the output folder for their predictions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cptuning.data.formats import files_package
from cptuning.errors import CPTuningError
from cptuning.files.atomic import write_whole

# Readers of Parquet folders skip names that begin with an underscore.
_JOB_FILE = "_job.json"


@dataclass(frozen=True)
class Block:
    """A row group of a Parquet file: the unit that a worker reads, answers and writes."""

    path: str
    """The path of the file within the folder."""
    group: int

    @property
    def answers(self) -> str:
        """The name of its output file; sorted by name, the files are in the order of the rows.

        >>> Block("2024/part-1.parquet", 3).answers
        '2024/part-1-00003.parquet'
        """
        return f"{self.path.removesuffix('.parquet')}-{self.group:05d}.parquet"


def blocks_of(folder: Path) -> list[Block]:
    """All non-empty row groups of the Parquet files in a folder."""
    if not folder.is_dir():
        raise CPTuningError(
            f"{folder} is not a folder: --runner ray needs a folder of Parquet files."
        )
    parquet = files_package("pyarrow.parquet", folder)
    found = []
    for path in _parquet_files(folder):
        try:
            facts = parquet.read_metadata(folder / path)
        except Exception as error:  # pyarrow may raise any exception.
            raise CPTuningError(f"{folder / path} is not a valid Parquet file.") from error
        groups = range(facts.num_row_groups)
        found += [Block(path, g) for g in groups if facts.row_group(g).num_rows]
    if not found:
        raise CPTuningError(f"{folder} contains no Parquet file with rows.")
    return found


def _parquet_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.parquet")):
        inside = path.relative_to(folder)
        if not any(part.startswith((".", "_")) for part in inside.parts):
            yield inside.as_posix()


def begin(output: Path, source: Path, model: Path, options: dict[str, Any]) -> None:
    """Create the output folder, or check that it holds the output of this same job.

    Files may have been added to the source since it was begun, but none may have changed.
    """
    job = {"model": _digest(model), "options": options}
    files = {path: _footer_digest(source / path) for path in _parquet_files(source)}
    path = output / _JOB_FILE
    if path.is_file():
        before = json.loads(path.read_text("utf-8"))
        if {name: before.get(name) for name in job} != job:
            raise CPTuningError(
                f"{output} contains predictions of another model or with other options: "
                "choose another folder."
            )
        for name, digest in before["files"].items():
            if files.setdefault(name, digest) != digest:
                raise CPTuningError(
                    f"{source / name} has changed since {output} was begun: choose another folder."
                )
    elif output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CPTuningError(
            f"{output} exists and is not the output of an earlier run: choose another folder."
        )
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CPTuningError(f"{output} can't be written: {error.strerror}.") from error
    write_whole(path, json.dumps(job | {"files": files}, indent=2) + "\n")


def _footer_digest(path: Path) -> str:
    """A digest of a Parquet file's footer, which has the offsets and extremes of its columns.

    Only the end of the file is read, because a folder may be too large to be read twice.
    """
    with path.open("rb") as file:
        file.seek(-8, 2)  # The length of the footer and the magic number.
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, 2)
        return f"{path.stat().st_size} {sha256(file.read(length)).hexdigest()}"


def _digest(model: Path) -> str:
    """A digest of all files of a model folder."""
    digest = sha256()
    for path in sorted(p for p in model.rglob("*") if p.is_file()):
        digest.update(path.relative_to(model).as_posix().encode())
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()
