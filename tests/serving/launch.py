"""The command as the tests of the service start it; run as a program.

Usage: launch.py [--without-torch] [--gate FILE] ARGUMENTS...

While the file of ``--gate`` exists, the worker waits before it reads or learns; it makes the file
``FILE.waiting`` to say that it does.
"""

import sys
import time
from pathlib import Path


def wait_at(gate):
    """Let the worker wait while there is a gate."""
    from cptuning.serving.served_model import ServedModel

    def gated(work):
        def wait_and_work(self, *arguments):
            if gate.exists():
                gate.with_name(f"{gate.name}.waiting").touch()
            while gate.exists():
                time.sleep(0.01)
            return work(self, *arguments)

        return wait_and_work

    ServedModel.predict, ServedModel.add_examples = (
        gated(ServedModel.predict),
        gated(ServedModel.add_examples),
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "--without-torch":
        sys.path.insert(0, str(Path(__file__).parents[2]))
        from tests.export.base_install import Absent

        sys.meta_path.insert(0, Absent())
        arguments = arguments[1:]
    if arguments[0] == "--gate":
        wait_at(Path(arguments[1]))
        arguments = arguments[2:]
    sys.argv[1:] = arguments
    from cptuning.__main__ import main

    main()
