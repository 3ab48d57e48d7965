"""What is to be reproduced: the options of both command lines, described in one place."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from cptuning.backbone.catalogue import NAMES
from cptuning.data import SEEDS
from cptuning.errors import CPTuningError
from cptuning.experiments.studies import STUDIES, Study
from cptuning.settings import LARGEST_SEED

SUMMARY = """Re-run a table or figure of the paper, beside the paper's numbers where it has them.

A command that was killed continues where it was when it is started again.

Several commands can share a folder."""


class Help(NamedTuple):
    """What a command line says about an option."""

    metavar: str
    text: str


@dataclass(frozen=True)
class Request:
    """What is to be reproduced, with what, and where the results go."""

    study: Annotated[str, Help("STUDY", f"{', '.join(STUDIES)}; or all.")]
    output: Annotated[Path, Help("FOLDER", "The result directory; runs in it are kept.")] = Path(
        "results"
    )
    backbone: Annotated[
        str, Help("NAME", f"{NAMES} (see `cptuning backbones`), a folder, or a hub id.")
    ] = "embedded"
    datasets: Annotated[
        tuple[str, ...], Help("NAMES", "Data sets in place of the study's, separated by commas.")
    ] = ()
    seeds: Annotated[
        tuple[int, ...], Help("NUMBERS", "Seeds of the splits, separated by commas.")
    ] = SEEDS
    methods: Annotated[
        tuple[str, ...], Help("NAMES", "Methods in place of the study's, separated by commas.")
    ] = ()
    steps: Annotated[int | None, Help("N", "Training steps in place of the presets'.")] = None
    device: Annotated[str, Help("NAME", "auto, cpu, cuda …")] = "auto"
    precision: Annotated[
        str, Help("KIND", "auto (bfloat16 on a GPU that supports it), float32 or bfloat16.")
    ] = "auto"
    workers: Annotated[int, Help("N", "Processes that share the runs.")] = 1
    runner: Annotated[str, Help("NAME", "local; ray: a cluster, or this machine.")] = "local"
    publish: Annotated[
        Path | None, Help("FOLDER", "Also write the report and all records, packed, here.")
    ] = None
    data: Annotated[
        Path | None, Help("FOLDER", "The data sets; else $CPTUNING_DATA, else the hub.")
    ] = None
    tune: Annotated[bool, Help("", "Choose m, τn, ξ, λ and k on dev too (needs optuna).")] = False
    fast: Annotated[bool, Help("", "A small version: two seeds, two grid points.")] = False
    dry_run: Annotated[
        bool, Help("", "Only print how many runs there are and how long they will take.")
    ] = False
    report_only: Annotated[bool, Help("", "Train nothing; report what is finished.")] = False

    def studies(self) -> list[Study]:
        """The studies that the request names.

        >>> [study.name for study in Request("tsne").studies()]
        ['tsne']
        """
        if self.study != "all" and self.study not in STUDIES:
            raise CPTuningError(
                f"There is no study {self.study!r}: use one of {', '.join(STUDIES)} or all."
            )
        if self.study == "all":
            return [study for study in STUDIES.values() if study.in_all]
        return [STUDIES[self.study]]


@dataclass(frozen=True)
class Option:
    """A field of a request on a command line."""

    name: str
    kind: Any
    help: Help
    default: str | bool | None
    """As it would be typed; False for a flag."""

    @property
    def is_argument(self) -> bool:
        """Whether it must be given, without its name: so it is with the study."""
        return self.name == "study"

    @property
    def flag(self) -> str:
        """Its name on the command line.

        >>> [option.flag for option in OPTIONS][:2], OPTIONS[-1].flag
        (['study', '--output'], '--report-only')
        """
        return self.name if self.is_argument else f"--{self.name.replace('_', '-')}"


def _options() -> Iterator[Option]:
    hints = get_type_hints(Request, include_extras=True)
    for field in fields(Request):
        kind, text = get_args(hints[field.name])
        default = field.default
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        elif default is MISSING:
            default = None
        elif not isinstance(default, bool | None):
            default = str(default)
        yield Option(field.name, kind, text, default)


OPTIONS = list(_options())


def parse_request(given: Mapping[str, str | bool | None]) -> Request:
    """The request that options make; their values are as they were typed.

    >>> parse_request({"study": "main", "seeds": "13,21", "fast": True}).seeds
    (13, 21)
    >>> parse_request({"study": "main", "steps": "many"})
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: --steps is 'many': give a whole number.
    """
    values: dict[str, Any] = {}
    for option in OPTIONS:
        typed = given.get(option.name)
        if isinstance(typed, bool):
            values[option.name] = typed
        elif typed is not None:
            read, expected = _READERS[option.kind]
            try:
                values[option.name] = read(typed)
            except ValueError:
                raise CPTuningError(f"{option.flag} is {typed!r}: give {expected}.") from None
    return Request(**values)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _seeds(text: str) -> tuple[int, ...]:
    seeds = tuple(map(int, _names(text)))
    if not all(0 <= seed <= LARGEST_SEED for seed in seeds):
        raise ValueError
    return seeds


# How the text of an option is read, and what it should have been.
_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    str: (str, "a name"),
    Path: (Path, "a folder"),
    Path | None: (Path, "a folder"),
    int: (int, "a whole number"),
    int | None: (int, "a whole number"),
    tuple[str, ...]: (_names, "names separated by commas"),
    tuple[int, ...]: (_seeds, f"whole numbers from 0 to {LARGEST_SEED}, such as 13,21"),
}
