"""All commands in their groups, and the handling of errors that reach the top level."""

import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from indexes.cluster import trust as elastic_trust
from indexes.cores import cores
from indexes.errors import IndexesError, MissingExtraError
from linker.base.errors import LinkerError, extra_of
from linker.base.logs import logging_to
from linker.base.printable import guard_output, on_one_line
from linker.base.terminal import note, warn
from linker.cli import (
    backup,
    doctor,
    elastic,
    evaluate,
    explain,
    find,
    index,
    link,
    models,
    probability,
    rank,
    review,
    search,
    simulate,
    tune,
    watch,
)
from linker.cli.options import with_flags
from linker.cli.registry import Commands, command_group, register

__all__ = ["app", "main"]

WIDEST = 120  # maximum line length of help texts, if the terminal is wide enough

app = typer.Typer(
    name="linker",
    help="Find which posts belong to which articles (and the reverse), on a laptop.",
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)
GROUPS = {
    "index": command_group(
        "Build, change, inspect and tune an index.",
        (
            *(index.build, index.add, index.delete, index.compact, index.drop, index.info, index.verify),
            *(backup.backup, backup.restore, backup.checkout),
            *(backup.export, backup.join, tune.tune, elastic.rebuild),
        ),
    ),
    "rank": command_group("Train a ranker and explain its order.", (rank.train, rank.explain)),
    "review": command_group(
        "Export, import and compare judgements; simulate reviews.",
        (review.status, review.export, ("import", review.import_), review.agreement, simulate.simulate),
    ),
}
COMMANDS: tuple[Callable[..., None], ...] = (
    search.search,
    find.find,
    watch.watch,
    link.link,
    link.group,
    link.triangulate,
    link.align,
    models.train,
    models.plot,
    models.encode,
    models.export,
    explain.explain,
    probability.calibrate,
    evaluate.evaluate,
    evaluate.compare,
    doctor.doctor,
)
for name, commands in GROUPS.items():
    app.add_typer(commands, name=name)
for command in COMMANDS:
    register(app, command)


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if context.invoked_subcommand is None and not version:
        typer.echo(context.get_help())
    if version:
        from linker.base.version import __version__

        typer.echo(__version__)
        raise typer.Exit


class _Notes(logging.Handler):
    """Prints the package's log messages on stderr: warnings by `warn`, all others by `note`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        (warn if record.levelno >= logging.WARNING else note)(with_flags(record.getMessage()))


@functools.cache
def _commands() -> Any:
    """Return the commands in Click's form, which takes as long as a short search."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line. A user's mistake prints one line on stderr and exits with status 1, wrong usage with 2."""
    _spare_cores()
    elastic_trust.confirm = elastic.confirm_host
    guard_output()
    try:
        with logging_to(_Notes()):
            _commands()(prog_name="linker")  # shells request completions for a program of this name
    except (LinkerError, IndexesError) as e:
        _fail(with_flags(str(e)))
    except ModuleNotFoundError as e:
        extra = extra_of(e.name or "")
        if extra is None:
            raise
        _fail(str(MissingExtraError(f"this command ({e.name} is missing)", extra)))
    except ImportError as e:
        _fail(
            f"a package cannot be loaded ({e}): memory is short (see `ulimit -v`) or the installation is damaged"
        )
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except MemoryError:
        _fail(
            "memory is short: raise its limit (`ulimit -v`), close other programs, or give smaller inputs or batches"
        )
    except OSError as e:
        _fail(f"{e.filename}: {e.strerror}" if e.filename else str(e))
    except KeyboardInterrupt:
        sys.exit(130)


def _spare_cores() -> None:
    """Keep other libraries' threads from busy-waiting and from outnumbering the cores."""
    # OpenBLAS's threads spin for 2**26 cycles after numpy's import (a quarter of a search's time), OpenMP's after
    # each parallel region. OpenMP does not know a container's quota.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OMP_NUM_THREADS", str(cores()))


def _fail(message: str) -> None:
    print(f"error: {on_one_line(message)}", file=sys.stderr)
    sys.exit(1)
