"""Dev pairs are held out by item: no text, and no translation of a pair, is on both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.scoring.pairs.data import Pair, groups, read_pairs
from linker.scoring.pairs.sts.cross_training import split_dev
from tests.helpers import shared_data


def pair(id_: str, first: str, second: str) -> Pair:
    return Pair(id_, first, second, 1.0)


def test_worked_items() -> None:
    pairs = [
        pair("1", "a", "b"),
        pair("2", "c", "d"),
        pair("3", "e", "b"),  # shares b with the first
        pair("2", "x", "y"),  # the translation of the second
        pair("4", "f", "e"),  # shares e with the third, and so an item with the first
        pair("5", "2", "1"),  # texts are not ids
        pair("6", "y", "x"),
    ]
    assert groups(pairs) == [[0, 2, 4], [1, 3, 6], [5]]


texts = st.text("abcdefgh", max_size=2)
few = st.lists(st.builds(pair, st.text("12345678", min_size=1, max_size=2), texts, texts), max_size=30)


@settings(max_examples=200, deadline=None)
@given(few)
def test_items_are_the_connected_components(pairs: list[Pair]) -> None:
    def alike(a: Pair, b: Pair) -> bool:
        return a.id == b.id or bool(set(a.texts) & set(b.texts))

    items: list[set[int]] = []
    for row in range(len(pairs)):
        joined = [item for item in items if any(alike(pairs[row], pairs[other]) for other in item)]
        items = [item for item in items if item not in joined] + [{row}.union(*joined)]
    assert groups(pairs) == sorted(sorted(item) for item in items)


@settings(max_examples=200, deadline=None)
@given(few, st.sampled_from([0.0, 0.1, 0.3, 0.5]), st.integers(0, 5))
def test_the_sides_share_nothing(pairs: list[Pair], share: float, seed: int) -> None:
    try:
        rest, dev = split_dev(pairs, share, seed)
    except InputError as e:
        assert "`dev`" in str(e)
        assert min(map(len, groups(pairs))) > round(share * len(pairs)) > 0
        return
    assert len(dev) <= round(share * len(pairs))
    assert sorted(map(id, rest + dev)) == sorted(map(id, pairs))
    assert not {p.id for p in rest} & {p.id for p in dev}
    assert not {t for p in rest for t in p.texts} & {t for p in dev for t in p.texts}
    assert (rest, dev) == split_dev(pairs, share, seed)


def test_single_items_fill_the_share_exactly() -> None:
    pairs = [pair(str(n), f"a{n}", f"b{n}") for n in range(50)]
    rest, dev = split_dev(pairs, 0.2, 0)
    assert (len(rest), len(dev)) == (40, 10)
    assert dev != split_dev(pairs, 0.2, 1)[1]
    with pytest.raises(InputError, match=r"more than 5 of the 50 pairs .* `dev`"):
        split_dev([pair("1", "a", "b")] * 50, 0.1, 0)


def test_no_translation_of_a_dev_pair_is_trained_on() -> None:
    folder = shared_data("sts")
    pairs = [p for language in ("en", "de") for p in read_pairs(folder / f"stsb-{language}-train.jsonl.gz")]
    rest, dev = split_dev(pairs, 0.1, 0)
    assert 0.095 * len(pairs) < len(dev) <= round(0.1 * len(pairs))
    assert not {p.id for p in rest} & {p.id for p in dev}
    assert not {t for p in rest for t in p.texts} & {t for p in dev for t in p.texts}
