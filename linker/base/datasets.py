"""Data sets of the package ir_datasets, named `ir_datasets:ID`, that are on this disk. Needs the extra `ir`."""

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from indexes.errors import importing
from linker.base.errors import InputError

PREFIX = "ir_datasets:"
BATCH = 1000  # rows read at a time
_guard = threading.RLock()  # for `offline`, which replaces process-wide state


def is_name(value: object) -> bool:
    """Return whether a string or path names a data set instead of a file."""
    return isinstance(value, str | os.PathLike) and os.fspath(value).startswith(PREFIX)


def open_dataset(name: str | os.PathLike[str]) -> Any:
    """Return the data set, an `ir_datasets.Dataset`. Raises InputError if there is no data set of this name."""
    with importing("a data set of ir_datasets", "ir"):
        import ir_datasets
    id_ = os.fspath(name).removeprefix(PREFIX)
    try:
        return ir_datasets.load(id_)
    except KeyError:
        raise InputError(f"ir_datasets has no data set {id_!r}: `ir_datasets list` lists them all") from None


@contextlib.contextmanager
def offline(name: str | os.PathLike[str]) -> Iterator[None]:
    """Keep ir_datasets from downloading inside the block: raise InputError if files of the data set are missing."""
    from ir_datasets.util import download

    id_ = os.fspath(name).removeprefix(PREFIX)

    def refuse(*_: object, **__: object) -> NoReturn:
        raise InputError(
            f"the data set {id_!r} of ir_datasets is not on this disk: fetch it first, as with "
            f"`ir_datasets export {id_} docs > /dev/null` (and queries, qrels)"
        )

    remote = [download.RequestsDownload, download.GoogleDriveDownload, download.GoogleCloudBucketStream]
    with _guard:
        streams = [kind.stream for kind in remote]
        try:
            for kind in remote:
                kind.stream = refuse
            yield
        finally:
            for kind, stream in zip(remote, streams, strict=True):
                kind.stream = stream


def qrels(name: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Return the judgements of a data set, topic → document → relevance. Raises InputError if it has none."""
    dataset = open_dataset(name)
    if not dataset.has_qrels():
        raise InputError(f"{os.fspath(name)} has no judgements: name a split of it, such as …/test")
    judged: dict[str, dict[str, int]] = {}
    for qrel in rows(name, dataset.qrels_iter):
        judged.setdefault(qrel.query_id, {})[qrel.doc_id] = int(qrel.relevance)
    return judged


def rows(name: str | os.PathLike[str], read: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """Yield the records that `read` returns, read in batches without downloading. Raises the errors of `offline`."""
    with offline(name):
        iterator = iter(read())
    while True:
        with offline(name):
            batch = list(itertools.islice(iterator, BATCH))
        if not batch:
            return
        yield from batch
