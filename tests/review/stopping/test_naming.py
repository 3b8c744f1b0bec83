"""Stopping rules by name and from TOML files, and docs/stopping.md, whose blocks print what is shown."""

import contextlib
import dataclasses
import io
import re

import pytest

from linker.base.errors import ConfigError, InputError, LinkerError
from linker.review.interface import Judgement, Progress, StopState
from linker.review.stopping import NAMES, make
from linker.review.stopping.naming import _RULES
from linker.review.stopping.rule import RuleOptions
from linker.review.stopping.rules import Urn
from tests.helpers import ROOT


def test_every_rule_has_a_name_and_the_default_is_the_urn() -> None:
    for name in NAMES:
        state = make(name, 1000, 0.9).state
        assert (state.estimated, state.stop, state.certified) == (False, False, None)
        assert state.reason.endswith(".")
    rule = make(population=100)
    assert isinstance(rule, Urn)
    assert (rule.w, rule.options.gap, rule.options.audit, rule.options.alpha) == (160, 50, 300, 0.05)


@pytest.mark.parametrize(
    ("name", "target", "options", "message"),
    [
        ("urm", 0.8, {}, "did you mean 'urn'"),
        ("nothing", 0.8, {}, "the known rules are urn, expected, hypergeometric"),
        ("urn", 1.2, {}, "a target recall of 1.2"),
        ("urn", 0.8, {"gaps": 3}, "unknown key gaps: did you mean gap"),
        ("urn", 0.8, {"gap": 0}, "gap = 0"),
        ("urn", 0.8, {"w": -1}, "w = -1"),
        ("urn", 0.8, {"w": "20"}, "w = '20' is str, expected float"),
        ("row", 0.8, {"w": 3}, "unknown key w"),
        ("urn", 0.8, {"alpha": 5}, "alpha = 5"),
        ("urn", 0.8, {"certificate": "none"}, "choose one of 'order', 'exact'"),
        ("until", 0.8, {"found": -1}, "found = -1"),
        ("qbcb", 0.8, {"controls": 5}, "needs at least 14"),
        ("qbcb", 1.0, {}, "target = 1"),
    ],
)
def test_mistakes_name_what_is_near(
    name: str, target: float, options: dict[str, object], message: str
) -> None:
    with pytest.raises(LinkerError, match=message) as caught:
        make(name, 1000, target, options)
    assert isinstance(caught.value, InputError | ConfigError)
    assert repr(name) in str(caught.value)


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
