"""python -m cptuning.experiments: ``cptuning reproduce`` where typer and rich are missing."""

import argparse
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from cptuning.errors import CPTuningError
from cptuning.experiments.plan import Request
from cptuning.experiments.reproduce import reproduce

_LISTS = {"datasets": str, "seeds": int, "methods": str}
_KINDS = {"steps": int, "workers": int, "output": Path, "data": Path, "publish": Path}


def parsed(words: list[str] | None = None) -> Request:
    """The request that a command line makes; the options are those of ``cptuning reproduce``.

    >>> parsed(["main", "--seeds", "13,21", "--fast"]).seeds
    (13, 21)
    """
    parser = argparse.ArgumentParser("python -m cptuning.experiments", description=__doc__)
    for field in fields(Request):
        text = field.metadata["help"].replace("%", "%%")
        if field.default is MISSING:
            parser.add_argument(field.name, help=text)
            continue
        kind: dict[str, Any] = {"type": _KINDS.get(field.name, str), "default": field.default}
        if isinstance(field.default, bool):
            kind = {"action": "store_true"}
        elif field.name in _LISTS:
            kind["type"] = listed(_LISTS[field.name])
        parser.add_argument(f"--{field.name.replace('_', '-')}", help=text, **kind)
    return Request(**vars(parser.parse_args(words)))


def listed(kind: type) -> Any:
    """A reader of values with commas between them.

    >>> listed(int)("13,21")
    (13, 21)
    """

    def values(text: str) -> tuple[Any, ...]:
        return tuple(kind(part.strip()) for part in text.split(",") if part.strip())

    return values


def main() -> None:
    """Run the request of the command line."""
    try:
        for path in reproduce(parsed(), lambda said: print(said, file=sys.stderr, flush=True)):
            print(path)
    except CPTuningError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("Stopped: what is finished is kept, start again to go on.")


if __name__ == "__main__":
    main()
