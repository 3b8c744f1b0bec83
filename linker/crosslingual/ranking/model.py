"""A linking model as a folder, so that later pages can be linked without training.

config.json holds the ranker, its calibration, the languages and a checksum of every other file; words.json the word
pairs learned from links, dictionary.json those of dictionaries, and spaces.npz the latent spaces, topics and hashes of
the links. No file in it is executed or unpickled.
"""

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xxhash

from linker.base.errors import InputError
from linker.corpora.dictionaries import Pair
from linker.crosslingual.pages.languages import Language
from linker.crosslingual.ranking.knowledge import HalfSpace, Knowledge, RowTopics
from linker.crosslingual.scoring.checkpoint import DAMAGE
from linker.crosslingual.scoring.topics import PolylingualTopics
from linker.encoders.model_folder import (
    CARD,
    CONFIG,
    card,
    check_replaceable,
    read_part,
    read_settings,
    replacing,
    write_part,
)
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker, from_json, to_json

FORMAT, KIND, MAKER = "linker-links-1", "linking model", "linker link --save-model"
WORDS, DICTIONARY, ARRAYS = "words.json", "dictionary.json", "spaces.npz"
MOST_BYTES = 2 << 30  # maximum size of a file
Arrays = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class LinkModel:
    """What a method learned: the ranker with its calibration, word pairs, latent spaces, and its settings.

    `pairs`: the word pairs of the dictionaries; `layout`: whether punctuation and line breaks were evidence; `about`:
    facts for the reader, as JSON values; `fingerprint`: a hash of the folder, empty before the model is saved.
    """

    method: str
    languages: tuple[Language, Language]
    start: CalibratedRanker
    knowledge: Knowledge
    pairs: tuple[Pair, ...] = ()
    encoder: str | None = None
    layout: bool = True
    about: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""

    def links(self, source: Language, target: Language) -> bool:
        """Return whether these are the model's languages; differences in the length of stems do not matter."""
        return [one.code for one in self.languages] == [source.code, target.code]


def check_writable(folder: Path) -> None:
    """Raise InputError if `save` would refuse the folder, before anything is learned."""
    check_replaceable(folder, [FORMAT], KIND)


def save(model: LinkModel, folder: Path) -> None:
    """Write a model to a folder atomically, in place of an earlier model. Raises InputError for other folders."""
    words = [[*pair, round(strength, 4)] for pair, strength in sorted(model.knowledge.words.items())]
    files = {
        WORDS: orjson.dumps(words),
        DICTIONARY: orjson.dumps(model.pairs),
        ARRAYS: _pack(_arrays(model.knowledge)),
    }
    settings = {
        "format": FORMAT,
        "method": model.method,
        "languages": [{"code": one.code, "stem": one.stem} for one in model.languages],
        "encoder": model.encoder,
        "layout": model.layout,
        "ranker": to_json(model.start),
        "files": {name: xxhash.xxh3_128_hexdigest(content) for name, content in files.items()},
        "about": dict(model.about),
    }
    with replacing(folder, [FORMAT], KIND) as new:
        for name, content in files.items():
            write_part(new / name, content)
        write_part(new / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_part(new / CARD, _card(model, folder.name))


def load(folder: Path) -> LinkModel:
    """Read a model that `save` wrote; every file is checked, and none is executed. Raises InputError."""
    settings = read_settings(folder, [FORMAT], MAKER)
    sums = settings.get("files")
    sums = sums if isinstance(sums, dict) else {}
    contents = {
        name: read_part(folder / name, MOST_BYTES, sums.get(name)) for name in (WORDS, DICTIONARY, ARRAYS)
    }
    try:
        words = {(str(a), str(b)): float(g) for a, b, g in orjson.loads(contents[WORDS])}
        pairs = tuple((str(a), str(b)) for a, b in orjson.loads(contents[DICTIONARY]))
        with np.load(io.BytesIO(contents[ARRAYS]), allow_pickle=False) as arrays:
            knowledge = _knowledge(words, arrays)
        first, second = (Language(str(v["code"]), int(v["stem"])) for v in settings["languages"])
        start, encoder = from_json(settings["ranker"]), settings["encoder"]
        if not all(map(math.isfinite, words.values())):
            raise ValueError("the strength of a word pair is out of range")
        digest = xxhash.xxh3_128_hexdigest(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))
        return LinkModel(
            str(settings["method"]),
            (first, second),
            start,
            knowledge,
            pairs,
            None if encoder is None else str(encoder),
            bool(settings["layout"]),
            dict(settings["about"]),
            digest,
        )
    except (*DAMAGE, TypeError) as e:
        raise InputError(
            f"{folder} is not a linking model of this version ({e!r}): copy it again, or train it again "
            f"(`{MAKER}`)"
        ) from None


def _arrays(knowledge: Knowledge) -> dict[str, Any]:
    """Return everything but the words as arrays: terms as UTF-8 text, one per line; components in half precision."""
    arrays: dict[str, Any] = {"links": knowledge.links, "spaces": np.array(len(knowledge.spaces))}
    arrays["pages"] = np.array(knowledge.pages)
    arrays["often.terms"] = _text(tuple(knowledge.often))
    arrays["often"] = np.array(list(knowledge.often.values()), np.int32)
    for number, space in enumerate(knowledge.spaces):
        for side, half in zip(("source", "target"), space, strict=True):
            name = f"space{number}.{side}"
            arrays[f"{name}.terms"] = _text(half.terms)
            arrays[f"{name}.idf"] = half.idf.astype(np.float32)
            arrays[f"{name}.components"] = half.components.astype(np.float16)
    if topics := knowledge.topics:
        arrays["topics.alpha"] = np.array(topics.model.alpha)
        for side, terms, words in zip(("source", "target"), topics.terms, topics.model.words, strict=True):
            arrays[f"topics.{side}.terms"] = _text(terms)
            arrays[f"topics.{side}.words"] = words.astype(np.float32)
    return arrays


def _knowledge(words: Mapping[tuple[str, str], float], arrays: Arrays) -> Knowledge:
    spaces = []
    for number in range(int(arrays["spaces"])):
        first, second = (_half(arrays, f"space{number}.{side}") for side in ("source", "target"))
        spaces.append((first, second))
    topics = None
    if "topics.alpha" in arrays:
        terms = tuple(_lines(arrays[f"topics.{side}.terms"]) for side in ("source", "target"))
        phi = tuple(arrays[f"topics.{side}.words"].astype(np.float64) for side in ("source", "target"))
        topics = RowTopics((terms[0], terms[1]), PolylingualTopics(phi, float(arrays["topics.alpha"])))
    often = dict(zip(_lines(arrays["often.terms"]), arrays["often"].tolist(), strict=True))
    links = arrays["links"].astype(np.uint64).reshape(-1, 2)
    return Knowledge(words, tuple(spaces), topics, links, often, int(arrays["pages"]))


def _half(arrays: Arrays, name: str) -> HalfSpace:
    terms = _lines(arrays[f"{name}.terms"])
    return HalfSpace(terms, arrays[f"{name}.idf"], arrays[f"{name}.components"].astype(np.float32))


def _text(terms: tuple[str, ...]) -> Any:
    return np.frombuffer("\n".join(terms).encode("utf-8", "surrogatepass"), np.uint8)


def _lines(text: Any) -> tuple[str, ...]:
    content = text.tobytes().decode("utf-8", "surrogatepass")
    return tuple(content.split("\n")) if content else ()


def _pack(arrays: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    save_arrays: Callable[..., None] = np.savez_compressed
    save_arrays(buffer, **arrays)
    return buffer.getvalue()


def _card(model: LinkModel, name: str) -> bytes:
    source, target = (one.code for one in model.languages)
    about = f"""Links pages in the language `{source}` to their counterparts in `{target}` (method `{model.method}`). It
holds word pairs and a latent space learned from linked pages, so their words can be read from its files."""
    code = f"""```sh
linker link {source}.jsonl {target}.jsonl --method {model.method} --model {name} --out links.run
```"""
    return card(name, about, code, model.about, "")
