"""The command ``cptuning``, also run by ``python -m cptuning``."""

import os
import sys


def main() -> None:
    """Run the command line; Ctrl-C during the imports shows no traceback."""
    _fill_closed_streams()
    try:
        from cptuning import cli
    except KeyboardInterrupt:
        sys.exit(130)
    cli.app()


def _fill_closed_streams() -> None:
    """Open the null device where a stream is closed, as by ``>&-`` in a shell.

    Otherwise the next file that is opened takes the stream's place, and what is printed ends there.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It takes the lowest number that is free.


if __name__ == "__main__":
    main()
