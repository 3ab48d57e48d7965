"""Every benchmark of speed, one after the other, into benchmarks/results.md.

    CPTUNING_DATA=folder python -m benchmarks [--quick] [training training_growth ...]

Each is a module here with a function ``section() -> str`` that measures and gives Markdown; with
``--quick`` those that can do less work do so. Sections of the file that are not run stay as they
are. If a benchmark fails, its section says so, the others are still run, and the command fails.
"""

import argparse
import inspect
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results.md"
SECTIONS = ("training", "training_growth", "prediction_speed", "agreement", "support_growth")


def run_section(name: str, quick: bool) -> tuple[str, bool]:
    """A section's Markdown, or the error in its place; and whether it succeeded."""
    try:
        section = import_module(f"benchmarks.{name}").section
        can_be_quick = "quick" in inspect.signature(section).parameters
        return section(**{"quick": True} if quick and can_be_quick else {}).strip(), True
    except Exception as error:
        traceback.print_exc()
        return f"## {name}\n\n**FAILED**: {type(error).__name__}: {error}", False


def dated(section: str, quick: bool) -> str:
    """The section with a line below its title that says when and where it was measured."""
    title, _, rest = section.partition("\n")
    where = (
        f"*Measured on {datetime.now(UTC):%Y-%m-%d}{', quickly' if quick else ''}: "
        f"{os.cpu_count()} CPU cores, {platform.machine()}, Python {platform.python_version()}.*"
    )
    return f"{title}\n\n{where}\n{rest}".rstrip()


def written_sections(path: Path) -> dict[str, str]:
    """The sections of a file by their titles."""
    text = path.read_text("utf-8") if path.exists() else ""
    parts = ("\n" + text).split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part}".strip() for part in parts}


def write_section(section: str, path: Path) -> None:
    """Replace the section with the same title, or add it at the end."""
    title = section.partition("\n")[0].removeprefix("## ")
    sections = written_sections(path) | {title: section}
    head = "# Benchmarks\n\nWritten by `make bench`."
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n\n".join([head, *sections.values()]) + "\n", "utf-8")
    temporary.replace(path)


def main(arguments: Sequence[str] | None = None, path: Path = RESULTS) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    everything = [*SECTIONS, *(["gpu"] if torch.cuda.is_available() else [])]
    parser.add_argument("sections", nargs="*", default=everything)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args(arguments)
    failed = []
    for name in chosen.sections:
        print(f"{name} ...", file=sys.stderr, flush=True)
        text, went_well = run_section(name, chosen.quick)
        print(text, end="\n\n", flush=True)
        failed += [] if went_well else [name]
        write_section(dated(text, chosen.quick), path)
    if failed:
        print(f"FAILED: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
