"""The command ``cptuning``, also run by ``python -m cptuning``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C during the imports shows no traceback."""
    try:
        from cptuning import cli
    except KeyboardInterrupt:
        sys.exit(130)
    cli.app()


if __name__ == "__main__":
    main()
