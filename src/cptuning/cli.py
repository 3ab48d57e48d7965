"""The command line: the commands by name, and how errors are shown."""

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import cptuning
from cptuning.commands.add import add
from cptuning.commands.app import app as page
from cptuning.commands.backbones import backbones
from cptuning.commands.check import check
from cptuning.commands.compare import compare
from cptuning.commands.console import prepare_libraries, say
from cptuning.commands.demo import demo
from cptuning.commands.evaluate import evaluate
from cptuning.commands.explain import explain
from cptuning.commands.export import export
from cptuning.commands.fit import fit
from cptuning.commands.info import info
from cptuning.commands.learning_curve import learning_curve
from cptuning.commands.methods import methods
from cptuning.commands.predict import predict
from cptuning.commands.push import push
from cptuning.commands.rank import rank
from cptuning.commands.reproduce import reproduce
from cptuning.commands.serve import serve
from cptuning.commands.suggest import suggest
from cptuning.commands.tag import tag
from cptuning.errors import CPTuningError
from cptuning.extras import needed_for

# The shell's exit codes for SIGINT and SIGPIPE.
_INTERRUPTED, _BROKEN_PIPE = 130, 141
_USER_ERROR = 2
# What a file or folder can be to blame for, and not the program.
_OF_THE_PLACE = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.EIO),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EMFILE, errno.ENFILE, errno.EFBIG),
)


class _Commands(TyperGroup):
    """Runs a command; an error of the user's becomes one sentence, a bug keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with needed_for("This"):
                result = super().invoke(ctx)
            if sys.stdout is not None:  # It was closed, as by >&- in a shell.
                sys.stdout.flush()
            return result
        except CPTuningError as error:
            say(f"error: {error}")
            raise typer.Exit(_USER_ERROR) from None
        except KeyboardInterrupt:
            say("Stopped.")
            raise typer.Exit(_INTERRUPTED) from None
        except BrokenPipeError:
            # The reader has closed the pipe; what is still buffered is discarded.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from None
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                say("error: There is no space left on the disk: free some and try again.")
            elif error.errno in _OF_THE_PLACE:
                what = "A file or folder" if error.filename is None else error.filename
                say(f"error: {what} can't be used: {error.strerror}.")
            else:
                raise
            raise typer.Exit(_USER_ERROR) from None
        except MemoryError:
            say("error: There is not enough memory: give fewer or shorter texts at once.")
            raise typer.Exit(_USER_ERROR) from None


app = typer.Typer(
    cls=_Commands,
    help="A few labelled examples in, a text classifier out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cptuning {cptuning.__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A few labelled examples in, a text classifier out."""
    prepare_libraries()


for command in (
    *(fit, predict, evaluate, explain, suggest, add, info, export, push, serve),
    *(check, learning_curve, demo, methods, backbones, reproduce, compare),
):
    app.command()(command)
app.command("app")(page)
app.add_typer(rank, name="rank")
app.add_typer(tag, name="tag")
