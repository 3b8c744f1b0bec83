"""The job `link`: link the texts of two collections; each is an index, or texts in the request."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from linker.base.errors import InputError
from linker.base.progress import Progress, listening
from linker.crosslingual.linking import link_sides, sides_of
from linker.crosslingual.options import LinkOptions
from linker.crosslingual.sides import links_between
from linker.engine.engine import Engine

# Options that a specification may set.
OPTIONS = ("method", "k", "encoder", "one_to_one", "min_probability", "precision", "self_train")


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Link `spec["source"]` to `spec["target"]` as `linker link` does, each text to at most `spec["k"]` others.

    Options that a specification omits have the defaults of `LinkOptions`. Raises InputError if the method lacks a
    required input, IndexesError if an index cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="linker-") as folder:
        home = Path(folder)
        source, target = (path_of(spec, name, home / f"{name}.jsonl") for name in ("source", "target"))
        codes = [spec[name].get("language") for name in ("source", "target")]
        known = [(one.strip(), other.strip()) for one, other in spec.get("links", ())]
        words = "".join(f"{_word(one)}\t{_word(other)}\n" for one, other in spec.get("dictionary", ()))
        options = LinkOptions(
            source,
            target,
            languages="-".join(codes) if all(codes) else None,
            dictionary=[_write(home / "dictionary.tsv", words.encode())] if words else (),
            links=spec.get("cardinality"),
            **{name: spec[name] for name in OPTIONS if name in spec},
        )
        with listening(tell):
            sides = sides_of(options)
            pairs = links_between("links", known, *(side.documents for side in sides)) if known else []
            linking = link_sides(*sides, pairs, options).links
    links = []
    for id_, of in linking.run.items():
        record: dict[str, Any] = {"source": id_, "targets": [{"id": t, "score": s} for t, s in of.items()]}
        if id_ in linking.copies:
            record["near_copies"] = list(linking.copies[id_])
        links.append(record)
    return {
        "method": linking.method,
        "languages": linking.metadata["languages"],
        "texts": [linking.texts, linking.targets],
        "links": links,
        "no_match": dict(linking.none),
    }


def path_of(spec: Mapping[str, Any], name: str, path: Path) -> Path:
    """Return the path of the collection `name`: its index or, if its documents are filtered or in the request, `path`,
    to which they are written.

    `spec["indexes"]` has the directories of collections that are indexes, of which clients know only the name.
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
        texts = [
            {**d.get("metadata", {}), "id": d["id"], "title": d.get("title", ""), "text": d["text"]}
            for d in side["documents"]
        ]
        if len({d["id"] for d in texts}) < len(texts):
            raise InputError(f"two documents in {name} have the same id: ids must be unique")
    if not texts:
        raise InputError(f"{name} has no documents: send some, or change its filter")
    return _write(path, b"".join(orjson.dumps(text) + b"\n" for text in texts))


def _word(text: str) -> str:
    return " ".join(text.split())


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
