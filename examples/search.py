"""Create an index, add documents, search, filter and delete."""

import tempfile
from pathlib import Path

import linker
from linker import Document, Engine

NEWS = [
    Document("n1", "Heavy rain flooded the streets of Valencia.", metadata={"lang": "en", "desk": "weather"}),
    Document(
        "n2", "Voters in Portugal elected a new parliament.", metadata={"lang": "en", "desk": "politics"}
    ),
    Document(
        "n3", "Flooded cellars: what insurers pay after the rain.", metadata={"lang": "en", "desk": "money"}
    ),
]

with tempfile.TemporaryDirectory() as folder:
    directory = Path(folder) / "news.index"
    # BM25 only; encoder="minilm" adds dense search.
    linker.create(directory)
    engine = Engine.open(directory)
    # One atomic commit: all documents or none.
    engine.add(NEWS)

    hits = engine.search("rain floods", k=3).hits[0]
    for id_, score in zip(hits.ids, hits.scores, strict=True):
        print(f"{score:.3f}  {id_}  {engine.document(id_).text}")

    weather = engine.search("rain floods", where=["desk=weather"]).hits[0]
    print("weather desk only:", *weather.ids)

    engine.delete(["n3"])
    print(len(engine), "documents are left")
