"""Reads and writes the manifest of a generation. It is written last: replacing it is the commit."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import orjson
import xxhash

from indexes.address import Address
from indexes.disk.reading import REMEDY, open_inside
from indexes.disk.writing import FileRecord
from indexes.interface import DamagedError, FormatVersionError, IndexesError
from indexes.store import manifest_checks
from indexes.store.records import FORMAT, BuildRecord, EncoderRecord, Manifest, Segment
from indexes.store.schema import SchemaError, parse
from indexes.text.parameters import AnalysisSettings, Bm25Parameters

NAME = "manifest.json"
SHARDS = "shards.json"  # the file that lists shards in a directory that represents several indexes
MOST_BYTES = 8 << 20  # about 50,000 files


def dump(manifest: Manifest) -> bytes:
    """Return the manifest as JSON below a line with its checksum. Raises IndexesError if it is too long."""
    body = orjson.dumps(_to_json(manifest), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)[1:]
    if len(body) > MOST_BYTES - 64:
        raise IndexesError(f"a manifest of {len(body)} bytes is too long to be read back: compact the index")
    return _checked(body)


def _checked(body: bytes) -> bytes:
    return b'{"xxh3": "%s",' % xxhash.xxh3_128_hexdigest(body).encode() + body


def load(directory: Path, name: str = NAME) -> Manifest:
    """Return the manifest of `directory`, or one stored under another name, after checking it.

    The checksum detects accidents only, since an attacker can write a matching one; so every value is checked as well
    (manifest_checks.py). Raises FormatVersionError, DamagedError, or IndexesError if there is no index.
    """
    return read(_read(directory, name), directory / name)


def read(data: bytes, path: Path | str) -> Manifest:
    """Return the manifest in `data`, checked as in `load`. Raises FormatVersionError, DamagedError."""
    try:
        return _parsed(data)
    except FormatVersionError as e:
        raise FormatVersionError(f"{path} {e}") from None
    except SchemaError as e:
        raise DamagedError(f"{path} is damaged: {e}; {REMEDY}") from None


# Cached, since between two commits each change and each reader reads the same bytes several times.
@functools.lru_cache(maxsize=8)
def _parsed(data: bytes) -> Manifest:
    if data != _checked(data.partition(b",")[2]):
        raise SchemaError("its checksum does not match")
    values = parse(data)
    version = values.get("format")
    if type(version) is int and version != FORMAT:
        raise FormatVersionError(
            f"has format {version}, but this version reads {FORMAT}: build the index again with `linker index build`, "
            "or use the linker that wrote it"
        )
    manifest_checks.check_values(values)
    manifest = _from_json(values)
    manifest_checks.check_consistent(manifest)
    return manifest


def check_directory(directory: Path) -> None:
    """Raise IndexesError if `directory` is the address of an index on a cluster."""
    if address := Address.of(directory):
        raise IndexesError(
            f"{address} is an index on a cluster, and this command needs one in a directory: build one there with "
            "`out` DIR. On a cluster there are search, find, serve, mcp, evaluate, watch, calibrate, rank train, and "
            "index build, add, delete, tune, compact, info, verify and drop"
        )


def _read(directory: Path, name: str) -> bytes:
    path = directory / name
    check_directory(directory)
    try:
        with open_inside(directory, name) as file:
            data = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if directory.is_file():
            raise IndexesError(
                f"{directory} is a file, not the directory of an index: build one with `linker index build {directory} "
                "--out DIR`"
            ) from None
        if (directory / SHARDS).is_file():
            raise IndexesError(
                f"{directory} stands for several indexes, which its {SHARDS} lists: name one of them"
            ) from None
        raise IndexesError(f"{directory} holds no index: build one with `linker index build`") from None
    except OSError as e:
        raise IndexesError(f"cannot read {path}: {e.strerror}") from None
    if len(data) > MOST_BYTES:
        raise DamagedError(f"{path} is damaged: it is longer than {MOST_BYTES} bytes; {REMEDY}")
    return data


def _to_json(manifest: Manifest) -> dict[str, Any]:
    values = dataclasses.asdict(manifest)
    values |= {"analysis": manifest.analysis.to_json(), "bm25": manifest.bm25.to_json()}
    if not manifest.build.columns:  # left out if empty, since earlier versions do not know this key
        del values["build"]["columns"]
    return values


def _from_json(values: dict[str, Any]) -> Manifest:
    del values["xxh3"]
    build = values.pop("build")
    sources = tuple((path, identity) for path, identity in build["sources"])
    encoder = values.pop("encoder")
    return Manifest(
        analysis=AnalysisSettings.from_json(values.pop("analysis")),
        bm25=Bm25Parameters.from_json(values.pop("bm25")),
        encoder=EncoderRecord(**encoder) if encoder else None,
        build=BuildRecord(build["complete"], build["position"], sources, build.get("columns", {})),
        segments=tuple(Segment(**s) for s in values.pop("segments")),
        files={name: FileRecord(**record) for name, record in values.pop("files").items()},
        **values,
    )
