"""What groupings store: which document found which, compared with an oracle over ids; and damaged files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.interface import Document
from linker.scoring.groups.evidence import Findings
from linker.scoring.groups.last_grouping import LastGrouping

ids = st.lists(st.sampled_from([f"d{i}" for i in range(8)]), unique=True, min_size=1)
Found = dict[tuple[str, str], tuple[float, bool]]


def documents(names: list[str], changed: str = "") -> list[Document]:
    return [Document(name, f"text of {name}{'!' * (name == changed)}") for name in names]


def findings(names: list[str], found: Found) -> Findings:
    one, other = (np.array([names.index(pair[i]) for pair in found], np.int64) for i in (0, 1))
    values = np.array([[value] for value, _ in found.values()], np.float32).reshape(-1, 1)
    return Findings(one, other, values, np.array([last for _, last in found.values()], bool))


def by_ids(names: list[str], some: Findings) -> Found:
    rows = zip(
        some.one.tolist(), some.other.tolist(), some.values[:, 0].tolist(), some.last.tolist(), strict=True
    )
    return {(names[one], names[other]): (value, last) for one, other, value, last in rows}


def saved(path: Path, names: list[str], found: Found) -> None:
    kept = LastGrouping(path, documents(names))
    assert kept.full and kept.restore(names, "here") is None
    kept.take(names, "here", findings(names, found), full=True)
    assert kept.span_of(names[0], names[-1], lambda: (3, 7)) == (3, 7)
    assert kept.words_of(names, lambda: ("text", names[0])) == ("text", names[0])
    assert [kept.language_of(name, lambda: "greek") for name in names] == ["greek"] * len(names)
    kept.save()


@given(ids, st.data())
def test_what_is_known_of_the_documents_that_stay_is_known_and_the_others_are_queries(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("kept") / "findings.npz"
    pairs = [(a, b) for a in before for b in before if a != b]
    found: Found = data.draw(
        st.dictionaries(st.sampled_from(pairs), st.tuples(st.integers(0, 9).map(float), st.booleans()))
        if pairs
        else st.just({})
    )
    saved(path, before, found)
    after, changed = data.draw(ids), data.draw(st.sampled_from([*before, ""]))
    kept = LastGrouping(path, documents(after, changed))
    stay = {name for name in after if name in before and name != changed}
    assert kept.full == (len(before) + len(after) - 2 * len(stay) > len(before))
    assert LastGrouping(path, documents(after)).restore(after, "elsewhere") is None
    languages = [kept.language_of(name, str) for name in after]
    assert languages == ["greek" if name in stay else "" for name in after]
    known = kept.restore(after, "here")
    assert (known is None) == kept.full
    if known is not None:
        some, asked = known
        assert by_ids(after, some) == {pair: of for pair, of in found.items() if {*pair} <= stay}
        lost = {a for (a, b), (_, last) in found.items() if last and b not in stay}
        assert {name for name, is_asked in zip(after, asked, strict=True) if is_asked} == {
            name for name in after if name not in stay or name in lost
        }
        if {*before} <= stay:
            assert kept.span_of(before[0], before[-1], lambda: None) == (3, 7)
            assert kept.words_of(before, tuple) == ("text", before[0])
        assert kept.span_of(after[0], after[0], lambda: None) == (
            (3, 7) if before == after[:1] == [*stay] else None
        )
        assert kept.words_of([*after, after[0]], tuple) == ()


def test_changes_add_up_until_all_documents_are_queries_again(tmp_path: Path) -> None:
    path, names = tmp_path / "findings.npz", ["a", "b", "c"]
    saved(path, names, {})
    for more, full in (("d", False), ("e", False), ("f", False), ("g", True), ("h", False)):
        names = [*names, more]
        kept = LastGrouping(path, documents(names))
        assert kept.full == full
        kept.take(names, "here", findings(names, {}), full=full)
        kept.save()


def broken(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def beyond(path: Path) -> None:
    with np.load(path, allow_pickle=False) as state:
        arrays = dict(state)
    arrays["other"] = arrays["other"] + 5
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def foreign(path: Path) -> None:
    path.write_text("no archive")


@pytest.mark.parametrize("damage", [broken, beyond, foreign])
def test_a_damaged_file_is_as_none(tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture) -> None:
    path, names = tmp_path / "findings.npz", ["a", "b"]
    saved(path, names, {("a", "b"): (1.0, True)})
    assert callable(damage)
    damage(path)
    kept = LastGrouping(path, documents(names))
    assert kept.full and kept.restore(names, "here") is None
    assert "all documents are compared again" in caplog.text and "pickle" not in caplog.text
