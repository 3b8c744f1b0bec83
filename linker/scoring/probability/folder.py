"""A calibration as a folder with one file, calibration.json. Every value read is checked; no code is executed."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xxhash

from indexes.store import schema
from indexes.store.schema import SchemaError, flag, mapping, number, one_of, record, several, text, whole
from linker.base.errors import InputError
from linker.base.files import read_regular, write_atomically
from linker.scoring.probability.calibration import Calibration, Source
from linker.scoring.probability.features import NAMES

FILE = "calibration.json"
FORMAT = "linker-calibration-1"
MOST_BYTES = 32 << 20
MOST_LINKS = 1_000_000
MOST = 1e9
_NUMBERS = several(number(-MOST, MOST), most=len(NAMES) + 1, least=1)
_SAMPLE = several(number(-MOST, MOST), most=MOST_LINKS, least=1)
VALUES = record(
    {
        "format": one_of((FORMAT,)),
        "names": several(one_of(NAMES), most=len(NAMES), least=1),
        "weights": _NUMBERS,
        "centre": _NUMBERS,
        "scale": several(number(1e-9, MOST), most=len(NAMES), least=1),
        "held": several(number(0, 1), most=MOST_LINKS),
        "right": several(flag, most=MOST_LINKS),
        "seen": mapping(one_of(NAMES), _SAMPLE, most=len(NAMES)),
        "source": record(
            {
                "encoder": text(256),
                "settings": text(16, "[0-9a-f]{16}", "a fingerprint of 16 hexadecimal digits"),
                "data": text(16, "[0-9a-f]{16}", "a fingerprint of 16 hexadecimal digits"),
                "documents": whole(),
                "generation": whole(),
            }
        ),
        "about": mapping(text(100), number(-MOST, MOST), most=100),
    }
)


def save(calibration: Calibration, folder: Path) -> Calibration:
    """Write a calibration to a folder, which may already exist; return it as `load` does. Raises InputError."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "names": calibration.names,
        **{
            key: getattr(calibration, key).tolist() for key in ("weights", "centre", "scale", "held", "right")
        },
        "seen": {name: sample.tolist() for name, sample in calibration.seen.items()},
        "source": dataclasses.asdict(calibration.source),
        "about": dict(calibration.about),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"cannot write {folder}: {e.strerror}") from e
    write_atomically(folder / FILE, orjson.dumps(values))
    return load(folder)


def load(folder: Path) -> Calibration:
    """Read a calibration. Raises InputError if it is missing, damaged or of another version."""
    path = folder / FILE
    try:
        data = read_regular(path, MOST_BYTES)
    except OSError as e:
        raise InputError(
            f"cannot read {path}: {e.strerror}; name a folder of `linker calibrate --out`"
        ) from e
    try:
        values = schema.parse(data)
        VALUES(values, "it")
        _check(values)
    except SchemaError as e:
        raise InputError(f"{path} is not a calibration of this version: {e}; calibrate again") from None
    arrays = {key: np.array(values[key], dtype=np.float64) for key in ("weights", "centre", "scale", "held")}
    return Calibration(
        tuple(values["names"]),
        **arrays,
        right=np.array(values["right"], dtype=bool),
        seen={name: np.array(sample, dtype=np.float64) for name, sample in values["seen"].items()},
        source=Source(**values["source"]),
        about=values["about"],
        fingerprint=f"calibration-{name_of(data)}",
    )


def name_of(data: bytes) -> str:
    """Return 16 hexadecimal digits that identify the content of a calibration's file."""
    return xxhash.xxh3_128_hexdigest(data)[:16]


def _check(values: dict[str, Any]) -> None:
    """Raise SchemaError unless the lists of a calibration have the lengths that its names and links need."""
    names = values["names"]
    sizes = {
        "weights": len(names) + 1,
        "centre": len(names),
        "scale": len(names),
        "right": len(values["held"]),
    }
    for key, size in sizes.items():
        if len(values[key]) != size:
            raise SchemaError(f"its `{key}` has {len(values[key])} numbers, not {size}")
    if len(set(names)) < len(names) or set(values["seen"]) != set(names):
        raise SchemaError("its features are repeated, or differ from those in `seen`")
