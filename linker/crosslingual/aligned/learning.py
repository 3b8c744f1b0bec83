"""Words that linked pages teach, and then, more exactly, their aligned passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linker.crosslingual.aligned.aligning import PageLink, align_pages
from linker.crosslingual.aligned.units import Unit
from linker.crosslingual.aligned.vectors import ByWords, present
from linker.crosslingual.lexicon.induction import induce

ROUNDS = 2  # of aligning and learning from what was aligned; further ones brought nothing
MOST = 2000  # pairs of pages that teach, evenly spaced


def learn_words(words: ByWords, links: Sequence[PageLink], unit: Unit) -> ByWords:
    """Return `words` with the pairs of words that linked pages teach, and their passages once these are aligned.

    Linked pages share the words of a topic, aligned passages those of a sentence, so that the second lesson is larger
    and sharper than the first. Too few pages teach nothing.
    """
    chosen = links[:: max(1, -(-len(links) // MOST))]
    x, y = words.terms
    rows = [link.source for link in chosen], [link.target for link in chosen]
    words = replace(words, taught=induce(x.present[rows[0]], y.present[rows[1]]))
    for _ in range(ROUNDS):
        alignments = align_pages(words.source, words.target, chosen, words, unit)
        passages = [one for alignment in alignments for one in alignment.passages]
        source = present([one.source for one in passages], words.source.language, x)
        target = present([one.target for one in passages], words.language, y)
        words = replace(words, taught=induce(source, target))
    return words
