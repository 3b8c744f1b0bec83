"""`linker index join`: a directory that stands for several indexes; and how commands take several indexes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from indexes.address import Address, shown
from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, print_json


def leading_indexes(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the leading words that are index directories, as paths, and the remaining words."""
    from indexes.sharded import is_index

    count = next((n for n, word in enumerate(words) if not is_index(Path(word))), len(words))
    return [Path(word) for word in words[:count]], list(words[count:])


def join(
    out: Annotated[
        Path,
        Opt("A new directory, one that `join` wrote before, or an address on a cluster.", "", metavar="OUT"),
    ],
    directories: Annotated[list[Path], Opt("Directories of the indexes, in order.", "", metavar="DIR...")],
    as_json: AsJson = False,
) -> None:
    """Let one directory stand for several indexes.

    Nothing is copied: the indexes stay where they are, and are changed one by one. search, find, serve and mcp take OUT
    like an index. If OUT is an address on a cluster, the indexes, of which each may be on a cluster, are copied into a
    new one there, with their vectors.

    Example: linker index join all.join january.index february.index
    """
    from indexes.sharded import join as join_shards
    from indexes.sharded import manifests_of

    join_shards(out, directories)
    documents = sum(manifest.documents for manifest in manifests_of(out))
    if as_json:
        print_json({"shards": [path_text(d) for d in directories], "documents": documents})
        return
    if Address.of(out):
        print(f"{shown(out)}: {documents} documents, copied from {len(directories)} indexes")
    else:
        print(f"{out}: {len(directories)} directories, {documents} documents")
