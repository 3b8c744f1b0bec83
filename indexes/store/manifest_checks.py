"""Checks of a manifest: its paths stay inside the index, its numbers match its files, its settings are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from indexes.fusion import Fusion
from indexes.hybrid import MODES
from indexes.interface import IndexesError
from indexes.kinds import KINDS, may_have_structure, on_server
from indexes.store import schema
from indexes.store.schema import (
    Check,
    SchemaError,
    flag,
    mapping,
    number,
    one_of,
    optional,
    record,
    several,
    text,
    whole,
)
from indexes.text.parameters import MOST_FIELDS, AnalysisSettings, Bm25Parameters

if TYPE_CHECKING:
    from indexes.store.records import Manifest

MOST_ROWS = 1 << 32
MOST_DIM = 1 << 16
MOST_FILES = 100_000
COMMIT = "[0-9]{6,15}"  # the number of a generation, used in file and folder names
PART = r"(?!\.{1,2}(?:/|$))[^\0-\x1f\x7f/\\\ud800-\udfff]{1,255}"  # one part of a path: not "." or "..", no separator
FILE = "|".join(
    (
        rf"segments/{COMMIT}/(?:documents\.jsonl|offsets\.i64|ids\.txt|vectors\.f32)",
        rf"deleted/{COMMIT}\.i64",
        rf"graph/{COMMIT}\.faiss",
        rf"quarantine/{COMMIT}\.jsonl",
        rf"text/{COMMIT}/(?:f[0-9]{{1,2}}/)?[0-9a-f]{{32}}\.(?:postings|forward)",
        f"encoder/{PART}/{PART}",
        r"ranker/[0-9a-f]{16}/(?:config\.json|model\.txt|README\.md)",
        r"calibration/[0-9a-f]{16}/calibration\.json",
        r"lexicon/[0-9a-f]{16}/[a-z]{2,3}\.json",
    )
)
VECTORS = ("none", *KINDS)
CHECKSUM = text(32, "[0-9a-f]{32}", "a checksum of 32 hexadecimal digits")


def _fusion(value: Any, where: str) -> None:
    try:
        fusion = Fusion.from_json(value)
    except IndexesError as e:
        raise SchemaError(f"{where}: {e}") from None
    several(number(0, 1e6), most=2, least=2)(list(fusion.weights), f"{where}.weights")
    whole(0, schema.MOST)(fusion.k, f"{where}.k")


def _analysis(value: Any, where: str) -> None:
    checks = {
        "language": text(),
        "tokenizer": text(),
        "stop_words": flag,
        "min_token": whole(),
        "version": whole(),
    }
    record(checks)(value, where)
    _refused_by(AnalysisSettings.from_json, value, where)


def _bm25(value: Any, where: str) -> None:
    """Check the parameters of BM25; an infinite k3 is null."""
    finite = number(0, float(schema.MOST))
    field = record({"name": text(255), "weight": finite, "b": optional(finite)})
    fields = several(field, most=MOST_FIELDS, least=1)
    record({"k1": finite, "b": finite, "k3": optional(finite), "fields": fields}, absent=("fields",))(
        value, where
    )
    _refused_by(Bm25Parameters.from_json, value, where)


def _refused_by(made_of: Callable[[Any], object], value: Any, where: str) -> None:
    try:
        made_of(value)
    except IndexesError as e:
        raise SchemaError(f"{where}: {e}") from None


COMMON: dict[str, Check] = {
    "xxh3": CHECKSUM,
    "format": whole(1, schema.MOST),
    "vectors": one_of(VECTORS),
    "encoder": optional(record({"name": text(), "fingerprint": text(256), "dim": whole(1, MOST_DIM)})),
    "generation": whole(),
    "documents": whole(0, MOST_ROWS),
    "quarantined": whole(),
    "segments": several(
        record({"name": text(15, COMMIT, "a number of six digits"), "rows": whole(1, MOST_ROWS)}),
        most=MOST_FILES,
    ),
    "build": record(
        {
            "complete": flag,
            "position": whole(),
            "sources": several(several(text(1 << 16), most=2, least=2), most=MOST_FILES),
            "columns": record(
                {"id": optional(text()), "text": text(), "title": optional(text())},
                absent=("id", "text", "title"),
            ),
        },
        absent=("columns",),
    ),
    "search": record(
        {
            "mode": one_of(MODES),
            "fusion": optional(_fusion),
            "vectors": record(
                {
                    "ef": number(1, 1 << 16),
                    "probed": number(1e-9, 1),
                    "refine": number(1e-9, 1 << 16),
                    "breadth": number(1, 10_000),
                },
                absent=("ef", "probed", "refine", "breadth"),
            ),
            "ranker": text(23, "ranker/[0-9a-f]{16}", "the folder of a ranker"),
            "calibration": text(28, "calibration/[0-9a-f]{16}", "the folder of a calibration"),
            "lexicon": text(24, "lexicon/[0-9a-f]{16}", "the folder of lexicons"),
        },
        absent=("mode", "fusion", "vectors", "ranker", "calibration", "lexicon"),
    ),
    "files": mapping(
        text(1000, FILE, "the name of a file that an index has"),
        record({"bytes": whole(), "xxh3": CHECKSUM}),
        most=MOST_FILES,
    ),
    "elastic": record(
        {
            "urls": several(text(), most=1000, least=1),
            "index": text(255),
            "shards": whole(1, 1024),
            "replicas": whole(0, 1024),
        },
        absent=("urls", "index", "shards", "replicas"),
    ),
}
# The first indexes of format 3 do not say whether they have positions.
VALUES = record(COMMON | {"analysis": _analysis, "bm25": _bm25, "positions": flag}, absent=("positions",))


def check_values(values: Any) -> None:
    """Raise SchemaError unless a manifest's values have the right keys, types and ranges, and its paths stay inside."""
    VALUES(values, "it")


def check_consistent(manifest: Manifest) -> None:
    """Raise SchemaError unless the counts, sizes and files of a manifest are consistent."""
    for check in (_check_encoder, _check_search, _check_segments, _check_deleted, _check_text, _check_graph):
        check(manifest)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SchemaError(otherwise)


def _check_encoder(manifest: Manifest) -> None:
    encoder, server = manifest.encoder, on_server(manifest.vectors)
    folders = {name.rpartition("/")[0] for name in manifest.files if name.startswith("encoder/")}
    if encoder is None:
        _require(not folders, "it has the files of a model, but no encoder")
        return
    _require(manifest.vectors != "none", "it has an encoder, but no vectors")
    expected = {encoder.name} if encoder.name.startswith("encoder/") else set()
    _require(folders == expected, f"its encoder {encoder.name!r} is not the model among its files")
    _require(bool(manifest.elastic) or not server, "its vectors are on a server that it does not name")


def _check_search(manifest: Manifest) -> None:
    _require(
        ("mode" in manifest.search) == ("fusion" in manifest.search), "it has only one of mode and fusion"
    )
    for kind in ("ranker", "calibration", "lexicon"):
        folders = {name.rpartition("/")[0] for name in manifest.files if name.startswith(f"{kind}/")}
        _require(
            folders == {manifest.search.get(kind)} - {None}, f"its {kind} is not the one among its files"
        )
    _require(len(manifest.elastic) in (0, 4), "its record of the server is incomplete")


def _check_segments(manifest: Manifest) -> None:
    names = [segment.name for segment in manifest.segments]
    _require(len(set(names)) == len(names), "it names a segment twice")
    _require(
        manifest.documents <= manifest.rows <= MOST_ROWS,
        f"it counts {manifest.documents} documents in {manifest.rows} rows",
    )
    listed = {name for name in manifest.files if name.startswith("segments/")}
    for segment in manifest.segments:
        for file, size in _sizes(manifest, segment.rows).items():
            name = f"segments/{segment.name}/{file}"
            _require(name in listed, f"it does not list {name}")
            listed.remove(name)
            actual = manifest.files[name].bytes
            _require(size in (None, actual), f"{name} has {actual} bytes, but its rows need {size}")
    _require(not listed, f"it lists {min(listed, default='')}, which belongs to no segment")


def _sizes(manifest: Manifest, rows: int) -> dict[str, int | None]:
    """Return the files of a segment with their sizes in bytes; None if the rows do not determine the size."""
    sizes: dict[str, int | None] = {"documents.jsonl": None, "offsets.i64": 8 * (rows + 1), "ids.txt": None}
    if manifest.encoder:
        sizes["vectors.f32"] = 4 * rows * manifest.encoder.dim
    return sizes


def _check_deleted(manifest: Manifest) -> None:
    sizes = [record.bytes for name, record in manifest.files.items() if name.startswith("deleted/")]
    _require(len(sizes) < 2, "it lists two files of deleted rows")
    deleted = manifest.rows - manifest.documents
    _require(
        sum(sizes) == 8 * deleted, f"it counts {deleted} deleted rows, but lists {sum(sizes)} bytes of them"
    )


def _check_text(manifest: Manifest) -> None:
    names = [name for name in manifest.files if name.startswith("text/")]
    folders = {"/".join(name.split("/")[:2]) for name in names}
    _require(len(folders) < 2, "it lists two generations of postings")
    postings = [name for name in names if name.endswith(".postings")]
    forward = [name for name in names if name.endswith(".forward")]
    _require(not postings or not manifest.elastic, "it has postings both in the directory and on a server")
    fields = manifest.bm25.fields
    inner = {f"f{n}" for n in range(len(fields))} if fields else {""}
    found = {"/".join(name.split("/")[2:-1]) for name in postings}
    _require(not postings or found == inner, "its postings are not those of its fields")
    _require(
        bool(forward) == (manifest.positions and manifest.rows > 0),
        "its forward index does not match its record",
    )
    _require(bool(postings or manifest.elastic) >= bool(manifest.rows), "it lists no postings")
    for name in names:
        # The next commit uses the checksum in the name.
        stem = name.rpartition("/")[2].partition(".")[0]
        _require(stem == manifest.files[name].xxh3, f"{name} is not named by its checksum")


def _check_graph(manifest: Manifest) -> None:
    graphs = [name for name in manifest.files if name.startswith("graph/")]
    _require(len(graphs) < 2, "it lists two graphs")
    _require(
        not graphs or may_have_structure(manifest.vectors),
        "it lists a graph, which its kind of vectors does not use",
    )
