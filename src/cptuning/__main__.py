"""``python -m cptuning``: the command where its script is not on the path."""

from cptuning.cli import main

main()
