"""The command line: thin commands over the library. `main` is the entry point of `linker` and `python -m linker`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import typer

from indexes.elastic import trust as elastic_trust
from indexes.errors import IndexesError, MissingExtraError
from linker.cli import (
    align,
    backup,
    bucc,
    doctor,
    elastic,
    evaluate,
    explain,
    export,
    find,
    index,
    join,
    link,
    mcp,
    models,
    probability,
    rank,
    review,
    search,
    serve,
    similarity,
    similarity_scores,
    sts,
    triangulate,
    tune,
    watch,
)
from linker.cli.common import Notes
from linker.cli.outputs import Command
from linker.errors import EXTRA_OF, LinkerError
from linker.logs import logging_to
from linker.printable import guard_output, on_one_line

__all__ = ["app", "main"]

WIDEST = 120  # columns of a help text, in a terminal that has them

app = typer.Typer(
    name="linker",
    help="Find which posts belong to which articles (and the reverse), on a laptop.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)
index_app = typer.Typer(
    help="Build, change, inspect and tune an index.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(index_app, name="index")
bucc_app = typer.Typer(
    help="Prepare data and evaluate runs of BUCC 2015.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(bucc_app, name="bucc")
similarity_app = typer.Typer(
    help="Score how similar two news articles are. Uses named entities.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(similarity_app, name="similarity")
sts_app = typer.Typer(
    help="Train, apply and evaluate sentence-pair scorers. They also serve as rerankers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(sts_app, name="sts")
rank_app = typer.Typer(
    help="Train a ranker that orders the best documents, and explain its order.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(rank_app, name="rank")
review_app = typer.Typer(
    help="Look into a review's judgements, export and import them, compare reviewers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(review_app, name="review")
COMMANDS: tuple[Callable[..., None], ...] = (
    search.search,
    find.find,
    watch.watch,
    serve.serve,
    mcp.mcp,
    link.link,
    triangulate.triangulate,
    align.align,
    models.train,
    models.plot,
    models.encode,
    models.export,
    explain.explain,
    probability.calibrate,
    evaluate.evaluate,
    evaluate.compare,
    evaluate.evaluate_pairs,
    doctor.doctor,
)
INDEX_COMMANDS: tuple[Callable[..., None], ...] = (
    index.build,
    index.add,
    index.delete,
    index.compact,
    index.drop,
    index.info,
    index.verify,
    backup.backup,
    backup.restore,
    backup.checkout,
    export.export,
    join.join,
    tune.tune,
    elastic.rebuild,
)
BUCC_COMMANDS: tuple[Callable[..., None], ...] = (bucc.prepare, bucc.dictionary, bucc.evaluate)
SIMILARITY_COMMANDS: tuple[Callable[..., None], ...] = (
    similarity.train,
    similarity_scores.predict,
    similarity_scores.evaluate,
    similarity_scores.calibrate,
)
RANK_COMMANDS: tuple[Callable[..., None], ...] = (rank.train, rank.explain)
REVIEW_COMMANDS: dict[str, Callable[..., None]] = {
    "status": review.status,
    "export": review.export,
    "import": review.import_,
    "agreement": review.agreement,
}
STS_COMMANDS: tuple[Callable[..., None], ...] = (sts.train, sts.predict, sts.evaluate)
for commands, group in (
    (COMMANDS, app),
    (INDEX_COMMANDS, index_app),
    (BUCC_COMMANDS, bucc_app),
    (SIMILARITY_COMMANDS, similarity_app),
    (RANK_COMMANDS, rank_app),
    (STS_COMMANDS, sts_app),
):
    for command in commands:
        group.command(cls=Command)(command)
for command_name, command in REVIEW_COMMANDS.items():
    review_app.command(command_name, cls=Command)(command)


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if context.invoked_subcommand is None and not version:
        typer.echo(context.get_help())
    if version:
        from linker import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line. A user's mistake prints one line on stderr and exits with status 1, wrong usage with 2."""
    # From numpy's import on, the threads of OpenBLAS wait in a loop for 2**26 cycles: a quarter of a lone search.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
    elastic_trust.confirm = elastic.confirm_host
    guard_output()
    try:
        with logging_to(Notes()):
            app(prog_name="linker")  # by which the shell asks for completions
    except (LinkerError, IndexesError) as e:
        _fail(str(e))
    except ModuleNotFoundError as e:
        extra = EXTRA_OF.get((e.name or "").partition(".")[0])
        if extra is None:
            raise
        _fail(str(MissingExtraError(f"this command ({e.name} is missing)", extra)))
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as e:
        _fail(f"{e.filename}: {e.strerror}" if e.filename else str(e))
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(message: str) -> None:
    print(f"error: {on_one_line(message)}", file=sys.stderr)
    sys.exit(1)
