"""Find posts about an article, best first, until two relevant ones are found. A function stands in for the reviewer."""

import tempfile
from pathlib import Path

import linker
from linker import Document, Engine
from linker.corpora import Query
from linker.review.finding import Candidate, StopRule, candidates, find
from linker.review.jsonl_ledger import Ledger

POSTS = [
    Document("p1", "The streets of Valencia are under water after the rain."),
    Document("p2", "Rain again? My tomatoes love it."),
    Document("p3", "Pumps are on their way to flooded Valencia."),
    Document("p4", "Elections in Portugal today."),
]
article = Query("a1", "Heavy rain flooded the streets of Valencia. Pumps are needed.")

with tempfile.TemporaryDirectory() as folder:
    directory = Path(folder) / "posts.index"
    linker.create(directory)
    engine = Engine.open(directory)
    engine.add(POSTS)

    def judge(candidate: Candidate) -> int:
        """Return 1 for a relevant post and 0 for any other; "undo" and "quit" are valid judgements too."""
        text = engine.document(candidate.id).text
        print(f"{candidate.score:.3f}  {text}")
        return int("Valencia" in text)

    ranked, _ = candidates(engine, [article])
    report = find(ranked, judge, Ledger(Path(folder) / "judgements.jsonl"), StopRule(until=2))
    print(f"{report.relevant} of {report.read} judged posts are relevant; stopped: {report.stopped}")
