"""A corpus for rankers: many documents have the words of a query, but only the right one in one sentence."""

import functools
import random

from indexes.interface import Document
from linker.corpora import Query
from tests.helpers import WORDS

COUNT = 160


@functools.cache
def documents() -> list[Document]:
    """Return documents of eight sentences of random words, with dates."""
    rng = random.Random(0)
    made = []
    for number in range(COUNT):
        sentences = [" ".join(rng.choices(WORDS, k=7)).capitalize() for _ in range(8)]
        date = {"date": f"2020-01-{1 + number % 28:02d}"}
        made.append(Document(f"d{number}", ". ".join(sentences) + ".", "", date))
    return made


def judged_queries() -> tuple[list[Query], dict[str, dict[str, float]]]:
    """Return a query for each document (five words of one sentence, and the date) and the judgements."""
    rng = random.Random(1)
    asked, judged = [], {}
    for document in documents():
        words = rng.choice(document.text.rstrip(".").split(". ")).lower().split()
        rng.shuffle(words)
        asked.append(Query(f"q{document.id}", " ".join(words[:5]) + f" {document.metadata['date']}"))
        judged[asked[-1].id] = {document.id: 1.0}
    return asked, judged
