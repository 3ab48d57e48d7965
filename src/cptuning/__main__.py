"""The command ``cptuning``, also as ``python -m cptuning`` where its script is not on the path."""

import sys


def main() -> None:
    """Run the command line; whoever stops it while it starts sees no traceback."""
    try:
        from cptuning import cli
    except KeyboardInterrupt:
        sys.exit(130)
    cli.app()


if __name__ == "__main__":
    main()
