"""Stopping rules by name and from TOML files, and the errors for mistakes in them."""

import pytest

from linker.base.errors import ConfigError, InputError, LinkerError
from linker.review.stopping import NAMES, make
from linker.review.stopping.rules import Urn


def test_every_rule_has_a_name_and_the_default_is_the_urn() -> None:
    for name in NAMES:
        state = make(name, 1000, 0.9).state
        assert (state.estimated, state.stop, state.certified) == (False, False, None)
        assert state.reason.endswith(".")
    rule = make(population=100)
    assert isinstance(rule, Urn)
    assert (rule.w, rule.options.gap, rule.options.audit, rule.options.alpha) == (120, 50, 300, 0.05)


@pytest.mark.parametrize(
    ("name", "target", "options", "message"),
    [
        ("urm", 0.8, {}, "did you mean 'urn'"),
        ("nothing", 0.8, {}, "known are urn, expected, hypergeometric"),
        ("urn", 1.2, {}, "a target recall of 1.2"),
        ("urn", 0.8, {"gaps": 3}, "unknown key gaps: did you mean gap"),
        ("urn", 0.8, {"gap": 0}, "gap = 0"),
        ("urn", 0.8, {"w": -1}, "w = -1"),
        ("urn", 0.8, {"w": "20"}, "w = '20' is str, expected float"),
        ("row", 0.8, {"w": 3}, "unknown key w"),
        ("urn", 0.8, {"alpha": 5}, "alpha = 5"),
        ("urn", 0.8, {"certificate": "none"}, "choose one of 'order', 'exact'"),
        ("until", 0.8, {"found": -1}, "found = -1"),
        ("qbcb", 0.8, {"controls": 5}, "takes at least 14"),
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
