"""Find posts about an article, best first, until two relevant ones are found. A function stands in for the reviewer."""

import tempfile
from pathlib import Path

import linker
from linker import Document, Engine
from linker.review.interface import Candidate, Seed, Verdict
from linker.review.ledger import Ledger
from linker.review.session import Review, find

POSTS = [
    Document("p1", "The streets of Valencia are under water after the rain."),
    Document("p2", "Rain again? My tomatoes love it."),
    Document("p3", "Pumps are on their way to flooded Valencia."),
    Document("p4", "Elections in Portugal today."),
]
article = Seed("a1", "Heavy rain flooded the streets of Valencia. Pumps are needed.")

with tempfile.TemporaryDirectory() as folder:
    directory = Path(folder) / "posts.index"
    linker.create(directory)
    engine = Engine.open(directory)
    engine.add(POSTS)

    ledger = Ledger(Path(folder) / "posts.review.sqlite")
    ledger.put_seeds([article])
    ledger.set("until", 2)

    def judge(candidate: Candidate) -> Verdict:
        """Judge a post; "maybe" and "skip" are verdicts too."""
        text = engine.document(candidate.id).text
        print(f"{candidate.score:.3f}  {text}")
        return "relevant" if "Valencia" in text else "not"

    report = find(Review(engine, ledger), judge)
    print(f"{report.relevant} of {report.read} judged posts are relevant; stopped: {report.stopped}")
