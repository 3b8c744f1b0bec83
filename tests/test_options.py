"""Options are declared once: the command line, Python and HTTP interpret one record the same way."""

import ast
import inspect
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from linker.base.options import Opt, describe, option_of, options, takes, values
from linker.cli import app, completion
from linker.cli.columns import Names, Tables
from linker.cli.elastic import Servers
from linker.cli.options import flags, spread, with_flags
from linker.cli.registry import FORMER, Command, every
from linker.cli.search import At
from linker.crosslingual.options import AlignOptions, LinkOptions, TriangulateOptions
from linker.engine.engine import Engine
from linker.engine.options import Bm25Options, BuildOptions, IntakeOptions, Least, SearchOptions
from linker.review.options import FindOptions, MatchOptions
from tests.helpers import linker
from tests.house import ROOT, files

RECORDS = {
    "link": (LinkOptions, Tables),
    "search": (SearchOptions, Least, Bm25Options, Tables, At),
    "index build": (BuildOptions, Bm25Options, Servers, Tables),
    "index add": (IntakeOptions, Tables),
    "find": (FindOptions, Tables),
    "watch": (MatchOptions, Names),
    "align": (AlignOptions,),
    "triangulate": (TriangulateOptions,),
}
COMMANDS = every(app)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMAND = re.compile(r"`linker [^`]*`")  # an example of the command line
FLAGS_LEFT = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Options that another record inherits."""

    count: Annotated[int, Opt("How many; not with --two-words.", low=1, high=9)] = 3
    colour: Annotated[bool, Opt("Without colour.", "--no-colour", off=True)] = True
    two_words: Annotated[bool, Opt("Two words.", "--two-words/--no-two-words")] = True


@dataclass(frozen=True, slots=True)
class Made(Base):
    """A record with every kind of field."""

    source: Annotated[str | Path, Opt("A file.", "", metavar="FILE")]
    out: Annotated[str | Path | None, Opt("Another.", required=True)] = None
    files: Annotated[str | Path | Sequence[str | Path], Opt("More.")] = ()
    kind: Annotated[Literal["a", "b"] | None, Opt("Which.")] = None
    secret: "Sequence[int] | None" = None


def ran(*arguments: str) -> Any:
    """Return the record that a command gets for these arguments, and its other arguments."""
    given: list[Any] = []

    def command(record: Made, more: Annotated[int, typer.Option()] = 7) -> None:
        given.extend((record, more))

    single = typer.Typer()
    single.command(cls=Command)(spread(command))
    done = CliRunner().invoke(single, list(arguments))
    assert (done.exit_code, given != []) in ((0, True), (2, False)), done.output
    return given or None


def test_a_command_gets_its_record_and_its_other_parameters() -> None:
    assert ran("x", "--out", "y") == [Made(Path("x"), Path("y")), 7]
    record, more = ran(
        "x", "--out", "y", "--files", "f", "--files", "g", "--kind", "b", "--no-colour", "--count", "9",
        "--no-two-words", "--more", "1",
    )  # fmt: skip
    files = [Path("f"), Path("g")]
    assert record == Made(Path("x"), Path("y"), files, "b", colour=False, count=9, two_words=False)
    assert more == 1


@pytest.mark.parametrize(
    "arguments",
    [["--out", "y"], ["x"], ["x", "--out", "y", "--count", "10"], ["x", "--out", "y", "--kind", "c"]],
)
def test_what_a_record_does_not_allow_is_wrong_usage(arguments: list[str]) -> None:
    assert ran(*arguments) is None


def test_python_takes_the_fields_as_arguments_and_shows_them() -> None:
    @takes(Made)
    def command(record: Made) -> Made:
        return record

    made = command("x", kind="a", count=2)
    assert made == Made("x", kind="a", count=2)
    assert command(**values(made)) == made
    names = "source, out, files, kind, secret, count, colour, two_words"
    assert ", ".join(inspect.signature(command).parameters) == names
    assert inspect.signature(command).parameters["out"].annotation == "str | Path | None"
    assert command.__name__ == "command"


def test_requests_take_the_help_with_fields_in_it() -> None:
    option, text = describe(Made, "count")
    assert text == "How many; not with `two_words`."
    assert (option.default, option.about.low, option.about.high) == (3, 1, 9)
    assert option_of("a", int, 1) is None


def test_a_search_by_python_takes_what_its_record_declares() -> None:
    arguments = inspect.signature(Engine.search).parameters
    declared = inspect.signature(SearchOptions).parameters
    assert {*arguments} - {*declared} == {"self", "texts", "vectors"}
    assert {name: arguments[name].default for name in declared} == values(SearchOptions())


@pytest.mark.parametrize("name", RECORDS)
def test_the_command_line_has_every_option_of_the_records_with_its_default(name: str) -> None:
    parameters = {p.name: p for p in COMMANDS[name].params}
    for option in (option for record in RECORDS[name] for option in options(record)):
        parameter = parameters[option.name]
        assert parameter.required == (option.about.required or option.default is inspect.Parameter.empty)
        default = None if option.default in ((), inspect.Parameter.empty) else option.default
        assert parameter.default == (not default if option.about.off else default)


def test_a_message_names_flags_where_the_library_names_arguments() -> None:
    found = flags(COMMANDS["link"])
    assert (found["one_to_one"], found["k"]) == ("--one-to-one", "-k")
    assert (found["layout"], found["margin"], found["identity"]) == (
        "--no-layout",
        "--margin",
        "--no-identity",
    )
    assert with_flags("give `header_row`, not `linker link`") == "give --header-row, not `linker link`"


def test_the_library_names_arguments_not_flags() -> None:
    """The exceptions name flags of other programs, of `linker serve` and `linker train`, or flags hidden by a
    name."""
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in (*files("indexes"), *files("linker"))
        if not {"papers", "demo"} & {*path.parts} and path.parent.name not in ("cli", "commands")
        if FLAG.search(path.read_text(encoding="utf-8"))  # the others need no parsing
        for text in texts(path)
        if FLAG.search(COMMAND.sub("", text))
    ]
    assert len(found) <= FLAGS_LEFT, found


def texts(path: Path) -> Iterator[str]:
    """Yield the string constants of a file that are neither docstrings nor option help."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if getattr(call.func, "id", "") == "Opt":
            left_out |= {id(node) for node in ast.walk(call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_that_it_understands(name: str) -> None:
    command = COMMANDS[name]
    first, *words = shlex.split(command.epilog or "")
    assert [first, *words[: len(name.split())]] == ["linker", *name.split()]
    command.make_context(name, words[len(name.split()) :])  # refuses unknown and missing options


def test_help_has_headings_and_the_example_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = linker("link", "--help").stdout
    found = re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)
    assert found[:2] == ["Arguments", "Options"] and found[-2:] == ["Tables", "Example"]
    assert shown.endswith("\nExample:\n  linker link posts.jsonl articles.jsonl --out links.csv\n")


@pytest.mark.parametrize("given", ["index", ("index", "other"), None])
def test_fields_are_completed_for_one_directory_and_for_several(
    given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_text('{"id": "a", "text": "rain", "lang": "en", "likes": 2}\n', encoding="utf-8")
    linker("index", "build", "c.jsonl", "--out", "index")
    context: Any = SimpleNamespace(params={"directory": given}, args=[] if given else ["index"])
    assert list(completion.conditions(context, "la")) == ["lang="]


@pytest.mark.parametrize("flag", ["--precision=float32", "--precision float32", "--dtype float32"])
def test_a_former_flag_works_and_names_its_successor(tmp_path: Path, flag: str) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "a", "text": "rain"}\n')
    done = linker("index", "build", corpus, "--out", tmp_path / "index", *flag.split())
    assert ("--precision is called --dtype now" in done.stderr) == flag.startswith("--precision")


def test_every_former_flag_stands_for_one_that_exists() -> None:
    for name, former in FORMER.items():
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert {*former.values()} <= known
        assert not {*former} & known
