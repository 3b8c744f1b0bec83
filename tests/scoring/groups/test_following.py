"""Group numbers that persist, and a log from which the groups can be reconstructed."""

from hypothesis import given
from hypothesis import strategies as st

from linker.scoring.groups.following import Change, changes, followed

Groups = dict[str, int]
groupings = st.dictionaries(st.sampled_from([f"d{i}" for i in range(12)]), st.integers(1, 5))


def numbered(before: Groups, after: Groups) -> Groups:
    number = followed(before, after)
    return {id_: number[group] for id_, group in after.items()}


@given(groupings)
def test_nothing_changes_where_nothing_changed(groups: Groups) -> None:
    renamed = {id_: 10 - group for id_, group in groups.items()}
    assert numbered(groups, renamed) == groups
    assert not list(changes(groups, groups))


@given(groupings, groupings)
def test_numbers_are_those_of_one_group_each(before: Groups, after: Groups) -> None:
    number = followed(before, after)
    assert number.keys() == set(after.values()) and len(set(number.values())) == len(number)
    for group, kept in number.items():
        ids = {id_ for id_, other in after.items() if other == group}
        assert kept > max(before.values(), default=0) or any(before.get(id_) == kept for id_ in ids)


@given(groupings, groupings)
def test_the_log_says_where_every_document_of_a_group_came_from(before: Groups, after: Groups) -> None:
    now = numbered(before, after)
    log = list(changes(before, now))
    told = dict(before)
    for change in log:
        for id_ in change.ids:
            told[id_] = change.group
        if change.change == "left":
            for id_ in change.ids:
                del told[id_]
    alone = {id_ for id_ in now if id_ not in before and list(now.values()).count(now[id_]) == 1}
    assert told == {id_: group for id_, group in now.items() if id_ not in alone}


def test_a_group_grows_begins_merges_and_splits() -> None:
    before = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "f": 4, "g": 4, "h": 4}
    after = {"a": 7, "b": 7, "c": 7, "d": 7, "new": 7, "f": 8, "g": 8, "h": 9, "i": 9, "x": 5}
    assert followed(before, after) == {7: 1, 8: 4, 9: 5, 5: 6}
    assert list(changes(before, numbered(before, after))) == [
        Change("joined", 1, ("new",)),
        Change("merged", 1, ("c", "d"), 2),
        Change("began", 5, ("h", "i")),
        Change("split", 5, ("h",), 4),
        Change("left", 3, ("e",)),
    ]
