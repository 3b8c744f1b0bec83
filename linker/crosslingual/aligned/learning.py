"""Word pairs learned from linked pages and then, more precisely, from their aligned passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linker.crosslingual.aligned.aligning import PageLink, align_pages
from linker.crosslingual.aligned.units import Unit
from linker.crosslingual.aligned.vectors import ByWords, present
from linker.crosslingual.lexicon.induction import induce

ROUNDS = 2  # rounds of aligning and learning from the alignment; further rounds did not help
MOST = 2000  # pairs of pages to learn from, evenly spaced


def learn_words(words: ByWords, links: Sequence[PageLink], unit: Unit) -> ByWords:
    """Return `words` plus the word pairs learned from linked pages and then from their aligned passages.

    Linked pages share the words of a topic, aligned passages the words of a sentence, so the second step yields more
    and sharper pairs than the first. Nothing is learned from too few pages.
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
