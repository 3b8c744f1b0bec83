"""docs/stopping.md is accurate: its blocks run and print the output shown, its rules and options exist."""

import contextlib
import dataclasses
import io
import re

from linker.review.interface import Judgement, Progress, StopState
from linker.review.stopping import NAMES
from linker.review.stopping.naming import _RULES
from linker.review.stopping.rule import RuleOptions
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "stopping.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def printed(code: str, **names: object) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, names)
    return output.getvalue().strip()


class Ledger:
    def judgements(self) -> list[Judgement]:
        return [Judgement("s", str(i), "not", phase="audit") for i in range(300)]


class Review:
    def progress(self) -> Progress:
        return Progress(912, 55, 0, 0, 11_665, [], StopState(True, 0.2925, "", left=133), "audit", "")


def test_the_blocks_print_what_stands_there() -> None:
    price, note, rule = blocks("python")
    told, sentence = (" ".join(text.split()) for text in blocks("text"))
    assert printed(price).split("\n") == ["1196", told]
    assert printed(note, review=Review(), ledger=Ledger()) == sentence
    (comment,) = re.findall("# (False .*)", rule)
    assert printed(rule) == comment


def test_the_rules_and_their_options_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE))
    assert tuple(rows) == NAMES
    shared = {field.name for field in dataclasses.fields(RuleOptions)}
    assert all(f"`{name}`" in PAGE for name in shared)
    for name, cell in rows.items():
        options = {field.name for field in dataclasses.fields(_RULES[name].kind)} - shared
        assert set(re.findall(r"`(\w+)`", cell)) == options
