"""Synthetic news: four stories in different words, graded pairs, and a spaCy pipeline that knows their names."""

import json
import random
from pathlib import Path

from linker.papers.news.articles import Article, NewsPair

STORIES = (
    "storm floods harbour rain wind coast ferry rescue boats waves",
    "election vote party minister parliament coalition ballot campaign leader poll",
    "football match goal striker league coach stadium referee penalty cup",
    "bank shares market profit merger investors bonds inflation interest quarter",
)
PLACES = ("London", "Paris", "Berlin", "Madrid")
COMPANIES = ("Acme", "Globex", "Initech", "Umbrella")


def article(rng: random.Random, story: int, language: str = "en") -> Article:
    """Write about thirty words of one story."""
    words = rng.choices(STORIES[story].split(), k=24)
    text = f"In {PLACES[story]} the {' '.join(words)} said {COMPANIES[story]} on Monday about {story + 2} of them."
    return Article(text, f"News of {words[0]} {words[1]}", language)


def news(count: int, seed: int = 0, *, language: str = "en") -> list[NewsPair]:
    """Return graded pairs: 1 to 2 for one story, 3 to 4 for two stories."""
    rng = random.Random(seed)
    pairs = []
    for number in range(count):
        first, second = rng.randrange(4), rng.randrange(4)
        second = first if number % 2 else second
        score = rng.choice((1.0, 1.5, 2.0)) if first == second else rng.choice((3.0, 3.5, 4.0))
        pairs.append(NewsPair(f"p{number}", article(rng, first, language), article(rng, second), score))
    return pairs


def write(path: Path, pairs: list[NewsPair]) -> Path:
    """Write pairs as JSON lines."""
    lines = []
    for pair in pairs:
        fields = {"_id": pair.id, "overall": pair.score}
        for side, text in ((1, pair.first), (2, pair.second)):
            fields |= {f"text{side}": text.text, f"title{side}": text.title, f"lang{side}": text.language}
        lines.append(json.dumps(fields) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def pipeline(folder: Path) -> Path:
    """Write a spaCy pipeline that finds the places, companies, days and numbers of the stories."""
    import spacy

    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    names = [("GPE", name) for name in PLACES] + [("ORG", name) for name in COMPANIES]
    names += [("DATE", "Monday"), *(("CARDINAL", str(n)) for n in range(2, 6))]
    ruler.add_patterns([{"label": label, "pattern": text} for label, text in names])
    nlp.to_disk(folder)
    return folder
