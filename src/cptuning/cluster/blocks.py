"""A folder of Parquet files as blocks of work, and the folder in which their answers gather."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cptuning.data.formats import files_package
from cptuning.errors import CPTuningError
from cptuning.files.atomic import write_whole

# Readers of Parquet folders pass over names that begin like this.
_JOB_FILE = "_job.json"


@dataclass(frozen=True)
class Block:
    """A row group of a Parquet file: what a worker reads, answers and writes in one go."""

    path: str
    """Within the folder."""
    group: int

    @property
    def answers(self) -> str:
        """The name of the file with its answers; sorted, the names are in the rows' order.

        >>> Block("2024/part-1.parquet", 3).answers
        '2024/part-1-00003.parquet'
        """
        return f"{self.path.removesuffix('.parquet')}-{self.group:05d}.parquet"


def blocks_of(folder: Path) -> list[Block]:
    """All row groups of the folder's Parquet files that have rows."""
    if not folder.is_dir():
        raise CPTuningError(f"{folder} is no folder: --runner ray takes one of Parquet files.")
    parquet = files_package("pyarrow.parquet", folder)
    found = []
    for path in _parquet_files(folder):
        try:
            facts = parquet.read_metadata(folder / path)
        except Exception as error:  # pyarrow may raise anything at all
            raise CPTuningError(f"{folder / path} is not a whole Parquet file.") from error
        groups = range(facts.num_row_groups)
        found += [Block(path, g) for g in groups if facts.row_group(g).num_rows]
    if not found:
        raise CPTuningError(f"{folder} holds no Parquet file with rows.")
    return found


def _parquet_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.parquet")):
        inside = path.relative_to(folder)
        if not any(part.startswith((".", "_")) for part in inside.parts):
            yield inside.as_posix()


def begin(output: Path, source: Path, model: Path, options: dict[str, Any]) -> None:
    """Make the folder of answers, or find that it holds answers of this very job.

    Files may have come to the source since; those it had must be as they were.
    """
    job = {"model": _digest(model), "options": options}
    files = {path: _footer_digest(source / path) for path in _parquet_files(source)}
    path = output / _JOB_FILE
    if path.is_file():
        before = json.loads(path.read_text("utf-8"))
        if {name: before.get(name) for name in job} != job:
            raise CPTuningError(
                f"{output} holds answers of another model or with other options: "
                "choose another folder."
            )
        for name, digest in before["files"].items():
            if files.setdefault(name, digest) != digest:
                raise CPTuningError(
                    f"{source / name} has changed since {output} was begun: choose another folder."
                )
    elif output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CPTuningError(f"{output} is there and holds no answers: choose another folder.")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CPTuningError(f"{output} can't be written: {error.strerror}.") from error
    write_whole(path, json.dumps(job | {"files": files}, indent=2) + "\n")


def _footer_digest(path: Path) -> str:
    """What tells a Parquet file from what it was: where its columns lie, and their extremes.

    It is read from the file's end, as a folder may hold more than can be read twice.
    """
    with path.open("rb") as file:
        file.seek(-8, 2)  # the length of the footer, and a mark
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, 2)
        return f"{path.stat().st_size} {sha256(file.read(length)).hexdigest()}"


def _digest(model: Path) -> str:
    """What tells a model folder from any other."""
    digest = sha256()
    for path in sorted(p for p in model.rglob("*") if p.is_file()):
        digest.update(path.relative_to(model).as_posix().encode())
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()
