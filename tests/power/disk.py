"""A disk on which a power cut leaves unflushed data in any state.

The model follows ALICE (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014) and CrashMonkey (Mohan et
al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018), and promises no more than POSIX:

- Data written to a file is on disk only after an fsync of that file. Until then any subset of the writes may be, each
  whole, truncated at any byte or block, or as zeros (the size grew, the data did not arrive).
- An entry of a folder (create, link, rename, unlink, mkdir, rmdir) is on disk only after an fsync of that folder; a
  rename between two folders after an fsync of both. Until then any subset may be, each all or nothing. An fsync of a
  file does not persist its name, nor does an fsync of a folder persist its own name in its parent.
- A file system that writes its journal in order (ext4, data=ordered) is a special case: a prefix of the entry
  changes, with the data of all files or, as with delayed allocation, only of the flushed ones.

A cut falls between any two calls. Of the states that it can leave (2^n for n unflushed calls), `variants` lists: none
and all of the unflushed calls; entries alone and data alone; each call left out, each alone; each of the last writes
torn; the orders of a journal; seeded random subsets.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import xxhash

ROOT = 0  # the inode of the watched folder
BLOCK = 4096
TORN = 3  # how many of the last writes are torn
NEVER = 1 << 62


@dataclass(frozen=True)
class Write:
    """Data written to a file at `offset`."""

    inode: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class Truncate:
    """A file's new size."""

    inode: int
    size: int


@dataclass(frozen=True)
class Entries:
    """Names that changed together: (folder, name, its new inode or None)."""

    changes: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True)
class Sync:
    """An fsync of a file or folder."""

    inode: int


@dataclass(frozen=True)
class Mark:
    """The program reported completion to its user."""


Op = Write | Truncate | Entries | Sync | Mark


@dataclass
class Disk:
    """Files by inode, and folders by inode with the inodes of their entries."""

    files: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})


@dataclass(frozen=True)
class Kept:
    """The part of a write that persisted: its bytes [start, end), and whether the size grew as if all had."""

    start: int
    end: int
    sized: bool


WHOLE = Kept(0, NEVER, sized=True)
ZEROS = Kept(0, 0, sized=True)
Choice = Mapping[int, Kept]  # position of unflushed call → part kept; absent calls never reached the disk
Tree = dict[str, bytes | None]  # by path; None: a folder


@dataclass(frozen=True)
class Variant:
    """The state after a cut before call `cut`; `choose` picks among the unflushed calls."""

    cut: int
    name: str
    choose: Callable[[Sequence[int]], Choice]


class History:
    """The initial content of a disk and the calls that changed it; gives the trees that a power cut may leave."""

    def __init__(self, start: Disk, ops: Sequence[Op]) -> None:
        self.start, self.ops = start, ops
        self._data: dict[int, list[int]] = {}  # the writes of each file, by position
        self._contents: dict[tuple[object, ...], bytes] = {}
        self._digests: dict[int, bytes] = {}
        self._entries: list[int] = []
        for place, op in enumerate(ops):
            if isinstance(op, Write | Truncate):
                self._data.setdefault(op.inode, []).append(place)
            elif isinstance(op, Entries):
                self._entries.append(place)
        self._flushed = self._flushes()

    def _flushes(self) -> list[int]:
        """Return the position of the fsync that flushed each call to disk."""
        found, last = [NEVER] * len(self.ops), dict[int, int]()
        for place in reversed(range(len(self.ops))):
            op = self.ops[place]
            if isinstance(op, Sync):
                last[op.inode] = place
            elif isinstance(op, Entries):
                found[place] = max(last.get(folder, NEVER) for folder, _, _ in op.changes)
            elif isinstance(op, Write | Truncate):
                found[place] = last.get(op.inode, NEVER)
        return found

    def unflushed(self, cut: int) -> list[int]:
        """Return the positions of the calls before `cut` that need not be on disk."""
        return [p for p in range(cut) if self._flushed[p] >= cut and not isinstance(self.ops[p], Sync | Mark)]

    def whole(self, cut: int) -> Tree:
        """Return the tree made by the calls before `cut`, as every program sees it until the power fails."""
        return self.tree(Variant(cut, "everything", _everything))

    def tree(self, variant: Variant) -> Tree:
        """Return the tree found when the power is back."""
        cut, chosen = variant.cut, variant.choose(self.unflushed(variant.cut))
        folders: dict[int, dict[str, int]] = {}
        for place in self._entries:
            if place >= cut:
                break
            if self._flushed[place] < cut or place in chosen:
                op = self.ops[place]
                assert isinstance(op, Entries)
                for folder, name, inode in op.changes:
                    names = folders.setdefault(folder, dict(self.start.folders.get(folder, {})))
                    names.pop(name, None)
                    if inode is not None:
                        names[name] = inode
        tree: Tree = {}
        self._lay_out(ROOT, "", folders, cut, chosen, tree)
        return tree

    def _lay_out(
        self,
        folder: int,
        above: str,
        folders: Mapping[int, Mapping[str, int]],
        cut: int,
        chosen: Choice,
        tree: Tree,
    ) -> None:
        for name, inode in folders.get(folder, self.start.folders[folder]).items():
            path = above + name
            if inode in self.start.folders:
                tree[path] = None
                self._lay_out(inode, f"{path}/", folders, cut, chosen, tree)
            else:
                tree[path] = self._content(inode, cut, chosen)

    def _content(self, inode: int, cut: int, chosen: Choice) -> bytes:
        kept = tuple(
            (place, WHOLE if self._flushed[place] < cut else chosen[place])
            for place in self._data.get(inode, ())
            if place < cut and (self._flushed[place] < cut or place in chosen)
        )
        key = (inode, kept)
        if key not in self._contents:
            self._contents[key] = self._written(inode, kept)
        return self._contents[key]

    def _written(self, inode: int, kept: Sequence[tuple[int, Kept]]) -> bytes:
        data = bytearray(self.start.files.get(inode, b""))
        for place, part in kept:
            op = self.ops[place]
            if isinstance(op, Truncate):
                data = data[: op.size].ljust(op.size, b"\0")
                continue
            assert isinstance(op, Write)
            end = min(part.end, len(op.data))
            size = op.offset + (len(op.data) if part.sized else end)
            data.extend(bytes(max(0, size - len(data))))
            data[op.offset + part.start : op.offset + end] = op.data[part.start : end]
        return bytes(data)

    def digest(self, tree: Tree) -> bytes:
        """Return a hash of a tree; equal hashes mean the same state."""
        state = xxhash.xxh3_128()
        for path in sorted(tree):
            content = tree[path]
            state.update(f"{path}\0".encode() + (b"/" if content is None else self._digest(content)))
        return state.digest()

    def _digest(self, content: bytes) -> bytes:
        if (
            found := self._digests.get(id(content))
        ) is None:  # `_contents` keeps it alive, so its id is not reused
            found = self._digests[id(content)] = xxhash.xxh3_128_digest(content)
        return found

    def variants(self, seed: int, subsets: int) -> tuple[list[Variant], list[Variant]]:
        """Return, for every cut, the states that are always tried, and those that a budget samples.

        The sampled states include `subsets` random ones per cut.
        """
        always, sampled = [], []
        for cut in range(len(self.ops) + 1):
            open_ = self.unflushed(cut)
            data = {p for p in open_ if not isinstance(self.ops[p], Entries)}
            always += [Variant(cut, name, choose) for name, choose in _corners(data)]
            sampled += [Variant(cut, name, choose) for name, choose in self._others(open_, data)]
            sampled += [
                self._random(cut, f"{seed} {cut} {n}") for n in range(subsets if len(open_) > 1 else 0)
            ]
        return always, sampled

    def _others(
        self, open_: Sequence[int], data: set[int]
    ) -> Iterator[tuple[str, Callable[[Sequence[int]], Choice]]]:
        for place in open_:
            yield f"without {place}", partial(_all_but, place)
            yield f"{place} alone", partial(_alone, place)
            if place not in data:
                yield f"journal to {place}, all data", partial(_journal, place, set(open_) - data, data)
                yield f"journal to {place}, no data", partial(_journal, place, set(open_) - data, set())
        for place in sorted(data)[-TORN:]:
            for kept in _tears(self.ops[place]):
                yield f"{place} torn, {kept}", partial(_torn, place, kept)

    def _random(self, cut: int, seed: str) -> Variant:
        return Variant(cut, f"subset {seed}", lambda some: self._subset(some, random.Random(seed)))

    def _subset(self, open_: Sequence[int], rng: random.Random) -> Choice:
        share = rng.choice((0.2, 0.5, 0.8))
        return {
            place: rng.choice([WHOLE, WHOLE, *_tears(self.ops[place])])
            for place in open_
            if rng.random() < share
        }


def _everything(open_: Sequence[int]) -> Choice:
    return dict.fromkeys(open_, WHOLE)


def _all_but(place: int, open_: Sequence[int]) -> Choice:
    return dict.fromkeys([p for p in open_ if p != place], WHOLE)


def _alone(place: int, _: Sequence[int]) -> Choice:
    return {place: WHOLE}


def _journal(last: int, entries: set[int], data: set[int], open_: Sequence[int]) -> Choice:
    """Keep the entry changes up to the last, and the data."""
    return {p: WHOLE for p in open_ if (p in entries and p <= last) or p in data}


def _torn(place: int, kept: Kept, open_: Sequence[int]) -> Choice:
    return dict.fromkeys(open_, WHOLE) | {place: kept}


def _corners(data: set[int]) -> Iterator[tuple[str, Callable[[Sequence[int]], Choice]]]:
    yield "nothing", lambda _: {}
    yield "everything", _everything
    yield "entries alone", lambda some: {p: WHOLE for p in some if p not in data}
    yield "data alone", lambda some: {p: WHOLE for p in some if p in data}
    yield "zeros for data", lambda some: {p: ZEROS if p in data else WHOLE for p in some}


def _tears(op: Op) -> list[Kept]:
    """Return ways in which a write may reach the disk in part."""
    if not isinstance(op, Write):
        return []
    size, half = len(op.data), len(op.data) // 2
    block = (half + BLOCK - 1) // BLOCK * BLOCK if size > BLOCK else half
    return [
        ZEROS,
        Kept(0, half, sized=False),
        Kept(0, half, sized=True),
        Kept(0, size - 1, sized=False),
        Kept(0, block, sized=True),
        Kept(block, size, sized=True),  # the later blocks arrived first
    ]
