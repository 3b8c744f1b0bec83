"""The reference of the command line, made from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from linker.cli import app

TITLE = """# Command line

Every command with its arguments and options, as `linker COMMAND --help` prints them. Results go to stdout, progress and
remarks to stderr. The exit status is 0 for success, 1 for a mistake in the data, 2 for one in the command.
"""


def commands_page() -> str:
    """Return the page in Markdown: a section per command, with tables of its arguments and options."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("linker", [], resilient_parsing=True)
    return "\n".join([TITLE, *_group(root, context, 2)])


def _group(group: Any, context: Any, level: int) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield f"{'#' * level} `{inner.command_path}`\n"
        yield f"{_paragraphs(command.help)}\n"
        if hasattr(command, "list_commands"):
            yield from _group(command, inner, level + 1)
        else:
            yield from _command(command, inner)


def _command(command: Any, context: Any) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```\n"
    if command.epilog:
        yield f"```sh\n{command.epilog}\n```\n"
    for heading, records in command.headings(context).items():
        rows = [record for record in records if not record[0].endswith("--help")]
        if rows:
            yield f"| {heading} | |\n|---|---|"
            yield from (f"| `{_cell(written)}` | {_cell(_markdown(text))} |" for written, text in rows)
            yield ""


def _paragraphs(text: str | None) -> str:
    """Return a help text whose lines flow, with its paragraphs kept."""
    blocks = (text or "").split("\n\n")
    return "\n\n".join(_markdown(" ".join(block.split())) for block in blocks)


def _markdown(text: str) -> str:
    """Return plain text as Markdown that shows the same characters; `code` stays code."""
    parts = text.split("`")
    marks = str.maketrans({"<": "&lt;", ">": "&gt;", "*": r"\*", "_": r"\_", "[": r"\[", "]": r"\]"})
    return "`".join(part if number % 2 else part.translate(marks) for number, part in enumerate(parts))


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
