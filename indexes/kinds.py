"""The kinds of vectors that an index may have, one record each, used by manifests, commands, docs and tests."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

AUTO = "auto"
# For the command line's choices, which are derived from a type.
VectorKindName: TypeAlias = Literal[
    "auto",
    "flat",
    "hnsw",
    "pq",
    "ivfpq",
    "elastic-flat",
    "elastic-hnsw",
    "elastic-int8_hnsw",
    "opensearch-flat",
    "opensearch-hnsw",
]
BREADTH = ("breadth",)  # candidates of each shard's graph


@dataclass(frozen=True, slots=True)
class VectorKind:
    """A kind of vectors.

    `exact`: whether every search compares all vectors. `home`: where the vectors are stored, in the directory or on
    which server. `settings`: the search parameters that `index tune --recall` chooses. `server_type`: the kind's name
    on the server.
    """

    name: str
    summary: str
    exact: bool
    home: Literal["directory", "elastic", "opensearch"] = "directory"
    settings: tuple[str, ...] = ()
    server_type: str = ""


KINDS = {
    kind.name: kind
    for kind in (
        VectorKind(AUTO, "exact below 200,000 documents, then pq or ivfpq by size", False),
        VectorKind("flat", "exact", True),
        VectorKind("hnsw", "approximate, a graph", False, settings=("ef",)),
        VectorKind("pq", "approximate, codes of 4 bits", False, settings=("refine",)),
        VectorKind("ivfpq", "approximate, codes in cells", False, settings=("probed", "refine")),
        VectorKind("elastic-flat", "exact, on Elasticsearch", True, "elastic", server_type="flat"),
        VectorKind("elastic-hnsw", "approximate, on Elasticsearch", False, "elastic", BREADTH, "hnsw"),
        VectorKind(
            "elastic-int8_hnsw",
            "approximate with bytes, on Elasticsearch",
            False,
            "elastic",
            BREADTH,
            "int8_hnsw",
        ),
        VectorKind("opensearch-flat", "exact, on OpenSearch", True, "opensearch", server_type="flat"),
        VectorKind("opensearch-hnsw", "approximate, on OpenSearch", False, "opensearch", BREADTH, "hnsw"),
    )
}
SERVER_TYPES = tuple(dict.fromkeys(kind.server_type for kind in KINDS.values() if kind.server_type))


def on_server(name: str) -> bool:
    """Return whether vectors of this kind are stored on a server; the kind may also be "none"."""
    return name in KINDS and KINDS[name].home != "directory"


def kinds_on(home: str) -> tuple[str, ...]:
    """Return the names of the kinds whose vectors are stored in the "directory", or on the named server."""
    return tuple(name for name, kind in KINDS.items() if kind.home == home)


IN_DIRECTORY = kinds_on("directory")


def may_have_structure(name: str) -> bool:
    """Return whether an index of this kind may store a graph or codes in addition to its vectors."""
    return name in IN_DIRECTORY and not KINDS[name].exact
