"""A ranker as a folder: model.txt (its trees, LightGBM's text format), config.json (the rest) and a model card."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import xxhash

from linker.base.errors import InputError
from linker.encoders.model_folder import (
    CARD,
    CONFIG,
    card,
    configured,
    format_of,
    read_part,
    read_settings,
    replacing,
    write_part,
)
from linker.scoring.ranking.calibration import ListCalibration
from linker.scoring.ranking.candidates import PoolSettings
from linker.scoring.ranking.forest import MOST_BYTES, MOST_FEATURES, Forest
from linker.scoring.ranking.ranker import Ranker

FORMATS = {"linker-ranker-1": "ranker"}
TREES = "model.txt"
MOST_BLEND = 100.0
MOST = 1e9  # maximum absolute value in the calibration


def save(ranker: Ranker, trees: str, folder: Path) -> Ranker:
    """Write a ranker with its `trees` as text, and return it as `load` does. Raises InputError."""
    settings = {
        "format": "linker-ranker-1",
        "pool": dataclasses.asdict(ranker.pool),
        "names": ranker.names,
        "calibration": {name: v for name, v in dataclasses.asdict(ranker.calibration).items() if v != ()},
        "encoder": ranker.encoder,
        "blend": ranker.blend,
        "trees": xxhash.xxh3_128_hexdigest(trees.encode()),
        "about": dict(ranker.about),
    }
    with replacing(folder, FORMATS, "ranker") as new:
        write_part(new / TREES, trees.encode())
        write_part(new / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_part(new / CARD, _card(ranker, folder.name))
    return load(folder)


def is_saved(folder: Path) -> bool:
    """Return whether a folder holds a ranker of this or another version, by its config.json."""
    return format_of(folder).startswith("linker-ranker-")


def load(folder: Path) -> Ranker:
    """Read a ranker, running no code in it. Raises InputError if it is missing, damaged or of another version."""
    path, settings = folder / CONFIG, read_settings(folder, FORMATS, "linker rank train")
    data = read_part(folder / TREES, MOST_BYTES, settings.get("trees"))
    try:
        names = _names(settings["names"])
        fitted = _calibration(settings["calibration"], names)
        encoder, about = str(settings["encoder"]), settings["about"]
        pool = configured(PoolSettings, settings["pool"], path)
        forest = Forest.read(data.decode(), folder / TREES)
        fingerprint = "ranker-" + xxhash.xxh3_128_hexdigest(
            orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)
        )
        blend = float(settings.get("blend", 0.0))  # earlier rankers have no blend
        if not 0 <= blend <= MOST_BLEND or (blend and "bm25" not in names):
            raise ValueError("BM25's weight is out of range")
        return Ranker(pool, names, forest, fitted, fingerprint, encoder, blend, dict(about))
    except (KeyError, TypeError, ValueError) as e:
        raise InputError(f"{path} does not describe a ranker of this version: {e!r}") from None


def _names(values: Any) -> tuple[str, ...]:
    names = tuple(str(name) for name in values)
    if not 0 < len(names) <= MOST_FEATURES or len(set(names)) < len(names):
        raise ValueError("its features are repeated, or too many")
    return names


def _calibration(values: Mapping[str, Any], names: tuple[str, ...]) -> ListCalibration:
    wanted = _names(values["inputs"])
    numbers = {key: tuple(float(v) for v in values[key]) for key in ("weights", "centre", "scale")}
    few = tuple(float(v) for v in values.get("few", ()))
    slope, linked = float(values["slope"]), values.get("linked")  # earlier rankers do not record it
    if any(name not in ("best", "lead", *names) for name in wanted):
        raise ValueError("its calibration uses an unknown feature")
    if (
        [len(v) - len(wanted) for v in numbers.values()] != [1, 0, 0]
        or min(numbers["scale"]) <= 0
        or len(few) not in (0, len(wanted) + 1)
    ):
        raise ValueError("its calibration has the wrong number of values")
    if not all(
        math.isfinite(v) and abs(v) <= MOST
        for v in (slope, *few, *(v for part in numbers.values() for v in part))
    ):
        raise ValueError("a number of its calibration is out of range")
    if linked is not None and not 0 < linked < 1:
        raise ValueError("its share of queries with a match is out of range")
    return ListCalibration(
        wanted, slope, numbers["weights"], numbers["centre"], numbers["scale"], linked, few
    )


def _card(ranker: Ranker, name: str) -> bytes:
    about = f"""A ranker by `linker rank train`: {len(ranker.forest.trees)} trees over {len(ranker.names)} features of
a query and a candidate. It has learned what a link looks like in its training queries and is untested on other kinds of
text and languages."""
    code = f'```sh\nlinker search DIR --text "…" --rerank {name}\n```'
    return card(name, about, code, {**ranker.about, **dataclasses.asdict(ranker.pool)}, "")
