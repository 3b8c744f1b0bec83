"""The demo's data and model: the Lee news stories that come with gensim; opening sentences are linked to the rest."""

import dataclasses
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexes.errors import MissingExtraError, importing

FILES = ("lee_background.cor", "lee.cor")
SHARE = 0.355  # share of the stories in each of dev and test
MIN_WORDS = 6  # minimum number of words in an opening sentence: earlier full stops usually follow initials
_END = re.compile(r"[.!?][\"')\]]*\s+(?=[\"'(]*[A-Z0-9])")
_ABBREVIATION = re.compile("mrs?|ms|dr|st|sen|gen|col|lt|rev|prof|no|jan|feb|aug|oct|nov")


@dataclass(frozen=True, slots=True)
class SplitStory:
    """A story split into its opening sentence (the "post") and the rest (the "article")."""

    id: str
    opening: str
    rest: str


def split_opening(text: str) -> tuple[str, str]:
    """Return the first sentence of a text and the rest, which is empty for a single sentence.

    A sentence ends at . ! or ?, closing quotes or brackets, and white space before a capital or digit, unless it
    has fewer than six words or its last word is an abbreviation or a single letter.
    """
    for end in _END.finditer(text):
        opening = text[: end.end()].strip()
        words = opening.split()
        last = words[-1].strip("\"'().!?[]").lower()
        if len(words) >= MIN_WORDS and len(last) > 1 and not _ABBREVIATION.fullmatch(last):
            return opening, text[end.end() :].strip()
    return text.strip(), ""


def lee_stories() -> tuple[list[SplitStory], list[SplitStory]]:
    """Return the 300 background stories and the 50 test stories, without duplicates or stories of one sentence.

    Ids are "b" or "t" followed by the line number from 1. Raises MissingExtraError if gensim or its files are
    missing.
    """
    spec = importlib.util.find_spec("gensim")  # importing gensim would take seconds
    folder = Path(spec.origin).parent / "test/test_data" if spec and spec.origin else Path()
    if not all((folder / name).is_file() for name in FILES):
        raise MissingExtraError("the Lee news corpus (part of gensim)", "demo")
    seen: set[str] = set()
    background, test = (_read(folder / name, prefix, seen) for name, prefix in zip(FILES, "bt", strict=True))
    return background, test


def split_stories(seed: int) -> tuple[list[SplitStory], list[SplitStory], list[SplitStory]]:
    """Return all stories in three random parts: training, dev (for choosing settings only) and test.

    Dev and test are drawn in the same way, so that settings chosen on dev suit the test stories. They are large,
    because a choice needs many links; training needs few: the model learns mostly from windows of the documents.
    """
    background, test = lee_stories()
    stories = [*background, *test]
    order = np.random.default_rng(seed).permutation(len(stories)).tolist()
    size = round(SHARE * len(stories))
    parts = order[2 * size :], order[size : 2 * size], order[:size]
    known, dev, held = ([stories[row] for row in part] for part in parts)
    return known, dev, held


def train_demo_encoder(out: Path, seed: int = 0) -> Path:
    """Train a small star encoder on some of the stories, within a minute, and save it to the folder `out`.

    As in `linker train ast`, the word vectors are first trained in an encoder that averages them, and windows of the
    documents are further training examples. Links come from 98 stories, and 120 more are the dev set. The word vectors
    start from latent semantic analysis of the collection to be indexed, which includes the bodies of the test stories;
    the opening sentences of the test stories, which are the queries, are never seen. Raises MissingExtraError if a
    package of the demo is missing.
    """
    with importing("training an encoder", "demo"):
        from linker.training.loop import train
    from linker.encoders.configs import PRESETS, BagConfig
    from linker.training.batches import Pairs
    from linker.training.config import DataConfig, EncoderConfig, TrainingConfig
    from linker.training.run import build_encoder, joined
    from linker.training.vectors import start_vectors

    known, dev, test = split_stories(seed)
    documents = [story.rest for story in (*known, *dev, *test)]
    pairs = Pairs([s.opening for s in known], documents, [(i, i) for i in range(len(known))])
    held_out = Pairs([s.opening for s in dev], documents, [(i, len(known) + i) for i in range(len(dev))])
    data = DataConfig(out, out, out, word_vectors="lsa", dim=250, min_count=1)
    tokenizer, vectors = start_vectors(data, joined(pairs), seed)
    bag = build_encoder(EncoderConfig(BagConfig(), 2048), tokenizer, vectors, seed)
    mean = TrainingConfig(
        temperature=0.07,
        batch_size=32,
        epochs=8,
        lr=3e-3,
        max_length=2000,
        word_dropout=0.3,
        cloze=64,
        seed=seed,
    )
    train(bag, pairs, held_out, mean, out / "training/mean")
    vectors = bag.module.get_submodule("embedding").get_parameter("weight").detach().cpu().numpy()
    model = EncoderConfig(dataclasses.replace(PRESETS["recommended"], heads=5, head_dim=20))
    star = TrainingConfig(
        temperature=0.1, batch_size=32, epochs=2, lr=1e-4, embedding_lr=0.0, max_length=128, crop=True,
        word_dropout=0.2, cloze=32, seed=seed,
    )  # fmt: skip
    train(build_encoder(model, tokenizer, vectors, seed), pairs, held_out, star, out)
    return out


def _read(path: Path, prefix: str, seen: set[str]) -> list[SplitStory]:
    stories = []
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), start=1):
        opening, rest = split_opening(line)
        if rest and opening not in seen and rest not in seen:
            stories.append(SplitStory(f"{prefix}{number}", opening, rest))
            seen |= {opening, rest}
    return stories
