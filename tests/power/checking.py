"""Opens states that a power cut may leave: each is the old or the new state, and the change can be repeated."""

import contextlib
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from indexes.vectors.faiss_files import load_faiss
from tests.power.changes import CHANGES, Change
from tests.power.disk import Entries, History, Mark, Tree, Variant

SEED = 17
SUBSETS = 50  # random subsets per cut, which the budget samples


@dataclass
class Verdict:
    """How many distinct states were opened, on how many the change was repeated, and the wrong ones."""

    states: int = 0
    made_again: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Broken:
    """The error raised by reading a state."""

    why: str


class Sandbox:
    """A real folder that holds one tree after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: Tree = {}
        self.clear()

    def clear(self) -> None:
        """Empty the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._held = {}

    def hold(self, tree: Tree) -> None:
        """Make the folder hold `tree`, writing only what differs."""
        for path in sorted(self._held, reverse=True):
            if path not in tree or (tree[path] is None) != (self._held[path] is None):
                target = self.folder / path
                target.rmdir() if self._held[path] is None else target.unlink()
                del self._held[path]
        for path in sorted(tree):
            data = tree[path]
            if path not in self._held or self._held[path] is not data:
                if data is None:
                    (self.folder / path).mkdir()
                else:
                    # a new file: an earlier reader may still map the old one
                    (self.folder / path).unlink(missing_ok=True)
                    (self.folder / path).write_bytes(data)
        self._held = dict(tree)


class Checker:
    """Checks the states of one change's history."""

    def __init__(self, change: Change, history: History, box: Path) -> None:
        self._change, self._history, self._box = change, history, Sandbox(box)
        self._found: dict[bytes, object] = {}
        self._story = self._told()

    def _told(self) -> list[tuple[int, object]]:
        """Return the states a user finds while the power stays on, and after how many calls each first appears."""
        ops = self._history.ops
        places = [0]
        for place, op in enumerate(ops, start=1):
            named = isinstance(op, Entries) and any(n in self._change.commits for _, n, _ in op.changes)
            if named or isinstance(op, Mark):
                places.append(place)
        story = [(place, self._read(self._history.whole(place))) for place in places]
        return [
            step
            for step, before in zip(story, [None, *story], strict=False)
            if not before or step[1] != before[1]
        ]

    def _read(self, tree: Tree) -> object:
        digest = self._history.digest(tree)
        if digest not in self._found:
            self._box.hold(tree)
            try:
                self._found[digest] = self._change.read(self._box.folder)
            except Exception as e:
                self._found[digest] = Broken(f"{type(e).__name__}: {e}")
        return self._found[digest]

    def _right(self, cut: int) -> list[object]:
        """Return the states allowed after a cut: none older than the acknowledged one."""
        marked = max((p for p, op in enumerate(self._history.ops[:cut]) if isinstance(op, Mark)), default=-1)
        first = max(n for n, (place, _) in enumerate(self._story) if place <= marked + 1)
        last = next((n for n, (place, _) in enumerate(self._story) if place >= cut), len(self._story) - 1)
        return [found for _, found in self._story[first : last + 1]]

    def check(self, budget: int, again: int, *, until_wrong: bool) -> Verdict:
        """Open up to `budget` distinct states, or up to the first wrong one; repeat the change on `again` of them."""
        always, sampled = self._history.variants(SEED, max(SUBSETS, budget // 10))
        rng = random.Random(SEED)
        rng.shuffle(sampled)
        seen: dict[bytes, Variant] = {}
        wrong = [f"undisturbed: {found.why}" for _, found in self._story if isinstance(found, Broken)]
        for number, variant in enumerate([*always, *sampled]):
            if (until_wrong and wrong) or (number >= len(always) and len(seen) >= budget):
                break
            tree = self._history.tree(variant)
            found, right = self._read(tree), self._right(variant.cut)
            seen.setdefault(self._history.digest(tree), variant)
            if isinstance(found, Broken) or found not in right:
                wrong.append(self._describe(variant, found))
        repeated = rng.sample(list(seen.values()), min(again, len(seen)))
        wrong += [line for variant in repeated if (line := self._again(variant))]
        return Verdict(len(seen), len(repeated), wrong)

    def _again(self, variant: Variant) -> str:
        """Make the change on a state; return the errors in the outcome."""
        self._box.clear()
        self._box.hold(self._history.tree(variant))
        try:
            with mock.patch("os.fsync"):  # flushing is not under test here
                if self._change.read(self._box.folder) != self._story[-1][1]:
                    self._change.make(self._box.folder)
                    self._change.tidy(self._box.folder)
                found = self._change.read(self._box.folder)
        except Exception as e:
            found = Broken(f"{type(e).__name__}: {e}")
        self._box.clear()
        return "" if found == self._story[-1][1] else "made again: " + self._describe(variant, found)

    def _describe(self, variant: Variant, found: object) -> str:
        op = self._history.ops[variant.cut - 1] if variant.cut else None
        why = found.why if isinstance(found, Broken) else f"{found} is neither the old nor the new one"
        return f"cut at {variant.cut} (after {_short(op)}), {variant.name}: {why}"


def _short(op: object) -> str:
    return repr(op)[:120]


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Limit FAISS to one thread: on small indexes more threads only wait for each other."""
    faiss = load_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def check(
    job: str, history: History, work: Path, budget: int, again: int = 0, *, until_wrong: bool = False
) -> Verdict:
    """Check up to `budget` states of a change, and repeat it on `again` of them; `work` holds its corpora.

    until_wrong: stop at the first wrong state.
    """
    with _one_thread():
        change = CHANGES[job.partition(":")[0]]
        return Checker(change, history, work / f"{job}.cut").check(budget, again, until_wrong=until_wrong)
