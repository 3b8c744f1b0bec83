"""The pass over all pairs, against brute force, for any blocks, workers and input order; and resumed."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import Float32Array
from linker.base.errors import InputError
from linker.crosslingual.scoring.candidates import (
    Candidates,
    Neighbours,
    PassState,
    hashes,
    nearest,
    rank,
)
from linker.crosslingual.scoring.checkpoint import Checkpoint, fingerprint
from tests.crosslingual.tiny import Given, numbered


def ids(n: int, prefix: str) -> list[str]:
    return [f"{prefix}{i}" for i in range(n)]


def run(scores: np.ndarray, depth: int = 3, block: int = 4, workers: int = 2) -> Neighbours:
    n, m = scores.shape
    return nearest(
        Given(scores.tolist()), ids(n, "s"), ids(m, "t"), depth=depth, k=2, block=block, workers=workers
    )


MATRICES = st.tuples(st.integers(1, 9), st.integers(1, 150), st.integers(0, 10**6)).map(
    lambda a: np.random.default_rng(a[2]).integers(-2, 6, (a[0], a[1])).astype(np.float32) / 4
)


@settings(max_examples=60, deadline=None)
@given(MATRICES, st.integers(1, 5), st.integers(1, 5))
def test_equals_brute_force(scores: np.ndarray, depth: int, block: int) -> None:
    found = run(scores, depth, block)
    n, m = scores.shape
    positive = np.maximum(scores, 0)
    for row in range(n):
        best = np.sort(scores[row][scores[row] > 0])[::-1][:depth]
        kept = found.candidates.targets[row] >= 0
        assert found.candidates.scores[row][kept] == pytest.approx(best)
        assert scores[row][found.candidates.targets[row][kept]] == pytest.approx(best)
        assert len(set(found.candidates.targets[row][kept].tolist())) == len(best)
        assert found.forward[row] == pytest.approx(
            np.sort(positive[row])[::-1][: min(2, depth)].sum() / min(2, m)
        )
    backward = np.sort(positive, axis=0)[::-1][:2].sum(axis=0) / min(2, n)
    assert found.backward == pytest.approx(backward)


def test_pairs_without_anything_in_common_are_not_ranked() -> None:
    rows, columns, scores = np.array([0, 0, 0]), np.array([0, 1, 2]), np.array([0.0, -1.0, 0.5], np.float32)
    found = rank(rows, columns, scores, 1, 3, hashes(["s"]), hashes(ids(3, "t")))
    assert found.targets.tolist() == [[2, -1, -1]]


def test_what_ties_with_the_last_place_to_six_decimals_takes_part() -> None:
    scores = 0.5 + np.random.default_rng(0).uniform(0, 4e-7, (1, 40)).astype(np.float32)
    assert (
        run(scores, depth=3).candidates.targets.tolist()
        == run(scores, depth=40).candidates.cut(3).targets.tolist()
    )


@settings(max_examples=30, deadline=None)
@given(MATRICES, st.randoms())
def test_order_of_input_never_breaks_a_tie(scores: np.ndarray, random: object) -> None:
    n, m = scores.shape
    rows, columns = np.random.default_rng(n).permutation(n), np.random.default_rng(m).permutation(m)
    plain = run(scores).candidates
    shuffled = nearest(
        Given(scores[rows][:, columns].tolist()),
        [f"s{i}" for i in rows], [f"t{i}" for i in columns], depth=3, k=2, block=3,
    ).candidates  # fmt: skip
    back = np.where(shuffled.targets >= 0, columns[shuffled.targets], -1)
    assert np.array_equal(back, plain.targets[rows])


def test_all_zero_scores_give_no_candidates_and_ties_are_at_chance() -> None:
    assert (run(np.zeros((50, 50))).candidates.targets == -1).all()
    tied = run(np.ones((400, 400), np.float32), depth=1).candidates
    assert (tied.targets[:, 0] == np.arange(400)).sum() < 8  # by chance, the diagonal is right in 1 of 400
    assert len(set(tied.targets[:, 0].tolist())) > 200  # and no target attracts all sources


class Failing(Given):
    """Fails at a given block."""

    def block(self, begin: int, end: int) -> Float32Array:
        if begin >= 6:
            raise KeyboardInterrupt
        return super().block(begin, end)


def test_an_interrupted_pass_goes_on_and_ends_alike(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).random((11, 40)).tolist()
    names = ids(11, "s"), ids(40, "t")
    whole = nearest(Given(scores), *names, depth=3, k=2, block=2)
    path = tmp_path / "r.part"
    with pytest.raises(KeyboardInterrupt):
        nearest(
            Failing(scores), *names, depth=3, k=2, block=2, workers=1,
            checkpoint=Checkpoint(path, "x", every=0),
        )  # fmt: skip
    asked: list[int] = []

    class Watched(Given):
        def block(self, begin: int, end: int) -> Float32Array:
            asked.append(begin)
            return super().block(begin, end)

    checkpoint = Checkpoint(path, "x", resume=True, every=0)
    again = nearest(Watched(scores), *names, depth=3, k=2, block=2, checkpoint=checkpoint)
    assert min(asked) > 0
    for name in ("forward", "backward"):
        assert np.array_equal(getattr(again, name), getattr(whole, name))
    assert np.array_equal(again.candidates.targets, whole.candidates.targets)
    checkpoint.path.unlink()
    assert not path.exists()


def test_a_pass_of_another_task_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.part"
    state = PassState(
        Candidates(np.full((2, 1), -1), np.zeros((2, 1), np.float32)), np.zeros((1, 3), np.float32),
        np.full((1, 3), -1, np.int32), 1,
    )  # fmt: skip
    Checkpoint(path, "x", every=0).keep(state)
    with pytest.raises(InputError, match="another task"):
        Checkpoint(path, "y", resume=True).restore(state)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match="damaged"):
        Checkpoint(path, "x", resume=True).restore(state)
    Checkpoint(path, "y").restore(state)  # without resuming, it will be overwritten
    assert state.done == 1


def test_a_kept_pass_packed_in_an_unknown_way_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.part"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("fingerprint.npy", b"x")
    data = path.read_bytes()
    central = data.index(b"PK\x01\x02")
    path.write_bytes(data[: central + 10] + b"\x63\0" + data[central + 12 :])  # the compression method
    state = PassState(
        Candidates(np.zeros((1, 1), np.int64), np.zeros((1, 1), np.float32)),
        np.zeros((1, 1), np.float32),
        np.zeros((1, 1), np.int32),
    )
    with pytest.raises(InputError, match="is damaged"):
        Checkpoint(path, "x", resume=True).restore(state)


def test_fingerprint_sees_texts_and_their_borders() -> None:
    one, two = numbered(["ab", "c"], "p"), numbered(["a", "bc"], "p")
    assert fingerprint(one, "x") == fingerprint(numbered(["ab", "c"], "p"), "x")
    assert len({fingerprint(one, "x"), fingerprint(two, "x"), fingerprint(one, "y")}) == 3
