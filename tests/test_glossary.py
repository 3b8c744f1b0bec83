"""One word, one meaning: class names, options and docs/glossary.md agree."""

import ast
import re
from collections import Counter, defaultdict

import pytest

from linker.cli import app
from linker.cli.registry import every
from tests.house import ROOT, files

# The same class for users of two frameworks, each of which they import from its own module.
TWICE = {"LinkerRetriever"}
# Options that are a name or number in one command and a file in another; this list may only shrink.
AMBIGUOUS = {"--known", "--links", "--seeds"}
ROW = re.compile(r"\| \*\*(?P<term>.+?)\*\* \| .+ \|(?P<names>.*)\|")


@pytest.fixture(scope="module")
def classes() -> Counter[str]:
    paths = (*files("indexes"), *files("linker"))
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_bytes())))
    return Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))


@pytest.fixture(scope="module")
def kinds() -> dict[str, set[str]]:
    """Return the kinds of values that each option takes; one of several words is a word."""
    found = defaultdict(set)
    for command in every(app).values():
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    kind = re.sub("ParamType|Range|Typer", "", type(parameter.type).__name__)
                    found[option].add(kind.replace("Choice", "String"))
    return found


@pytest.fixture(scope="module")
def glossary() -> dict[str, set[str]]:
    """Return the names in code and the options of each term."""
    rows = ROW.finditer((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))
    return {row["term"].lower(): set(re.findall("`(.+?)`", row["names"])) for row in rows}


def words(name: str) -> str:
    """Return a class or an option as a term: in lower case and in the singular."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|-", " ", name.removeprefix("--")).lower().removesuffix("s")


def test_every_class_has_a_name_of_its_own(classes: Counter[str]) -> None:
    assert {name for name, count in classes.items() if count > 1} == TWICE


def test_an_option_takes_one_kind_of_value_in_all_commands(kinds: dict[str, set[str]]) -> None:
    assert {option for option, several in kinds.items() if len(several) > 1} == AMBIGUOUS


def test_the_glossary_names_classes_and_options_that_exist(
    glossary: dict[str, set[str]], classes: Counter[str], kinds: dict[str, set[str]]
) -> None:
    assert len(glossary) > 40
    assert set().union(*glossary.values()) <= {*classes, *kinds}


def test_a_class_or_option_called_like_a_term_means_it(
    glossary: dict[str, set[str]], classes: Counter[str], kinds: dict[str, set[str]]
) -> None:
    terms = {term.removesuffix("s") for term in glossary}
    assert {name for name in (*classes, *kinds) if words(name) in terms} - set().union(
        *glossary.values()
    ) == set()
