"""The counterparts of texts in another collection: of indexes, or of texts that were sent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from linker.base.errors import InputError
from linker.base.progress import Progress
from linker.cli.commands.linking import link
from linker.engine.engine import Engine

# Options that a specification may have.
OPTIONS = ("method", "k", "encoder", "one_to_one", "min_probability", "precision", "self_train")


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Link `spec["source"]` to `spec["target"]` as `linker link` does, each text to at most `spec["k"]` others.

    What a specification leaves out is as in `LinkOptions`. Raises InputError where the method lacks something,
    IndexesError where an index cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="linker-") as folder:
        given = Path(folder)
        source, target = (side_of(spec, name, given / f"{name}.jsonl") for name in ("source", "target"))
        codes = [spec[name].get("language") for name in ("source", "target")]
        known = [{"source": one, "target": other} for one, other in spec.get("links", ())]
        words = "".join(f"{_word(one)}\t{_word(other)}\n" for one, other in spec.get("dictionary", ()))
        found = link(
            source,
            target,
            languages="-".join(codes) if all(codes) else None,
            dictionary=[written(given / "dictionary.tsv", words.encode())] if words else (),
            train=[written(given / "links.jsonl", lines(known))] if known else (),
            progress=tell,
            **{name: spec[name] for name in OPTIONS if name in spec},
        )
    links = []
    for id_, of in found.run.items():
        record: dict[str, Any] = {"source": id_, "targets": [{"id": t, "score": s} for t, s in of.items()]}
        if id_ in found.copies:
            record["near_copies"] = list(found.copies[id_])
        links.append(record)
    return {
        "method": found.method,
        "languages": found.metadata["languages"],
        "pages": [found.pages, found.targets],
        "links": links,
        "no_match": dict(found.none),
    }


def side_of(spec: Mapping[str, Any], name: str, path: Path) -> Path:
    """Return the path of a side: its index or, of documents that were sent or filtered, a file that holds them.

    `spec["indexes"]` has the directories of sides that are an index, which the side itself calls by its public name.
    """
    side = spec[name]
    index = spec.get("indexes", {}).get(name, side.get("index"))
    if index and not side.get("where"):
        return Path(index)
    if index:
        with Engine.open(Path(index)) as engine:
            found = engine.documents(side["where"])
            texts = [{**d.metadata, "id": d.id, "title": d.title, "text": d.text} for d in found]
    else:
        texts = side["documents"]
        if len({d["id"] for d in texts}) < len(texts):
            raise InputError("two documents of one side have the same id: ids must be unique")
    if not texts:
        raise InputError("one side has no documents: nothing can be linked")
    return written(path, lines(texts))


def lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as lines of JSON."""
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def _word(text: str) -> str:
    return " ".join(text.split())


def written(path: Path, content: bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(content)
    return path
