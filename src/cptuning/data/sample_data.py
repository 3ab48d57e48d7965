"""The sample data sets in the package, for the demo and the web page."""

from importlib.resources import as_file, files

from cptuning.data.files import Table, read_table


def read_sample(name: str) -> Table:
    """One of the labelled tables in the package.

    >>> len(read_sample("messages_train").examples)
    96
    """
    with as_file(files("cptuning.data") / "demo" / f"{name}.csv") as path:
        return read_table(path, need_label=True)
