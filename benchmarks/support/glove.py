"""Word vectors as GloVe's text, where GloVe itself cannot be had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linker.base.files import write_atomically
from linker.encoders.tokens import Vocabulary, load_word_vectors

MIN_COUNT, MOST = 2, 50_000  # as in [data]


def export(source: Path, texts: Sequence[str], path: Path) -> None:
    """Write a line `word x x …` for each word of `texts` to which the vectors in `source` give one.

    A word of several pieces gets their mean; the words of the texts stand for GloVe's own 400,000.
    """
    vocabulary = Vocabulary.build(texts, min_count=MIN_COUNT, max_size=MOST)
    vectors = load_word_vectors(source, vocabulary)
    lines = [
        f"{word} {' '.join(f'{x:.5g}' for x in vector)}\n"
        for word, vector, known in zip(vocabulary.tokens, vectors.matrix, vectors.known, strict=True)
        if known
    ]
    write_atomically(path, "".join(lines).encode())
