"""python -m cptuning.experiments: ``cptuning reproduce`` where typer and rich are missing."""

import sys
from argparse import ArgumentParser

from cptuning.errors import CPTuningError
from cptuning.experiments.reproduce import reproduce
from cptuning.experiments.request import OPTIONS, SUMMARY, parse_request


def make_parser() -> ArgumentParser:
    """A parser with the options of ``cptuning reproduce``."""
    parser = ArgumentParser("python -m cptuning.experiments", description=SUMMARY)
    for option in OPTIONS:
        metavar, text = option.help
        if isinstance(option.default, bool):
            parser.add_argument(option.flag, action="store_true", help=text)
        else:
            parser.add_argument(option.flag, metavar=metavar, default=option.default, help=text)
    return parser


def main() -> None:
    """Do what the command line asks for."""
    given = vars(make_parser().parse_args())
    try:
        for path in reproduce(parse_request(given), lambda text: print(text, file=sys.stderr)):
            print(path)
    except CPTuningError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("Stopped: finished runs are kept, start again to continue.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
