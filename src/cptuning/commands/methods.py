"""cptuning methods: what can be trained."""

from cptuning.commands.console import print_table


def methods() -> None:
    """List the methods that `cptuning fit --method` takes."""
    from cptuning.registry import list_methods

    print_table(list_methods().items())
