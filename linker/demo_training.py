"""The demo's data and model: the Lee news stories that come with gensim, opening sentence ↔ the rest."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexes.errors import MissingExtraError, importing

FILES = ("lee_background.cor", "lee.cor")
DEV = 60  # background stories kept for early stopping
MIN_WORDS = 6  # of an opening sentence: shorter ends are initials and the like
_END = re.compile(r"[.!?][\"')\]]*\s+(?=[\"'(]*[A-Z0-9])")
_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "st",
        "sen",
        "gen",
        "col",
        "lt",
        "rev",
        "prof",
        "no",
        "jan",
        "feb",
        "aug",
        "oct",
        "nov",
    ]
)


@dataclass(frozen=True, slots=True)
class Story:
    """A story cut in two: its opening sentence (the "post") and the rest."""

    id: str
    opening: str
    rest: str


def split_opening(text: str) -> tuple[str, str]:
    """Cut a text after its first sentence; the rest is empty for a text of one.

    A sentence ends at . ! or ? with closing quotes and blanks behind it and a capital or digit next, unless that
    leaves fewer than six words or the last word is an abbreviation or a single letter.
    """
    for end in _END.finditer(text):
        opening = text[: end.end()].strip()
        words = opening.split()
        last = words[-1].strip("\"'().!?[]").lower()
        if len(words) >= MIN_WORDS and len(last) > 1 and last not in _ABBREVIATIONS:
            return opening, text[end.end() :].strip()
    return text.strip(), ""


def lee_stories() -> tuple[list[Story], list[Story]]:
    """Return the 300 background stories and the 50 test stories, less those of one sentence and repeated ones.

    Ids are "b" or "t" and the line from 1. Raises MissingExtraError where gensim and its files are missing.
    """
    found = importlib.util.find_spec("gensim")  # found, not imported: that would take seconds
    folder = Path(found.origin).parent / "test/test_data" if found and found.origin else Path()
    if not all((folder / name).is_file() for name in FILES):
        raise MissingExtraError("the Lee news corpus (part of gensim)", "demo")
    seen: set[str] = set()
    background, test = (_read(folder / name, prefix, seen) for name, prefix in zip(FILES, "bt", strict=True))
    return background, test


def train_demo_encoder(out: Path, seed: int = 0) -> Path:
    """Train a small star encoder on the background stories into the folder `out`, in seconds to a minute.

    Links come from 230 background stories, 60 more are the dev set. Word vectors are latent semantic ones of the
    collection as it is to be indexed, so the rests of the test stories are among their texts; the opening sentences of
    the test stories, which are the queries, are never seen. Raises MissingExtraError.
    """
    with importing("training an encoder", "demo"):
        from linker.training.loop import train
    from linker.training.batches import Pairs
    from linker.training.config import DataConfig, EncoderConfig, TrainingConfig
    from linker.training.run import build_encoder, joined
    from linker.training.vectors import start_vectors

    background, test = lee_stories()
    order = np.random.default_rng(seed).permutation(len(background))
    dev, known = ([background[i] for i in part] for part in (order[:DEV], order[DEV:]))
    documents = [story.rest for story in (*known, *dev, *test)]
    pairs = Pairs([s.opening for s in known], documents, [(i, i) for i in range(len(known))])
    held_out = Pairs([s.opening for s in dev], documents, [(i, len(known) + i) for i in range(len(dev))])
    data = DataConfig(out, out, out, word_vectors="lsa", dim=250, min_count=1)
    tokenizer, vectors = start_vectors(data, joined(pairs), seed)
    model = EncoderConfig(heads=5, head_dim=20, max_weight=0.0)
    settings = TrainingConfig(temperature=0.1, batch_size=32, epochs=6, lr=3e-4, max_length=128, seed=seed)
    train(build_encoder(model, tokenizer, vectors, seed), pairs, held_out, settings, out)
    return out


def _read(path: Path, prefix: str, seen: set[str]) -> list[Story]:
    stories = []
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), start=1):
        opening, rest = split_opening(line)
        if rest and opening not in seen and rest not in seen:
            stories.append(Story(f"{prefix}{number}", opening, rest))
            seen |= {opening, rest}
    return stories
