"""cptuning methods: the methods that can be trained."""

from cptuning.commands.console import print_table


def methods() -> None:
    """List the methods for `cptuning fit --method`."""
    from cptuning.registry import list_methods

    print_table(list_methods().items())
