"""The rival of the service: FastAPI around an encoder and a flat FAISS index, as written in an afternoon.

`python -m benchmarks.support.plain_server INDEX` takes vectors, ids and encoder from one of our indexes, and prints
its port. Every request is encoded and searched separately, in a thread of FastAPI's pool.
"""

import socket
import sys
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from linker.encoders.loading import load_own
from linker.engine.engine import Engine


class Query(BaseModel):
    """A text and the number of hits wanted."""

    text: str
    k: int = 10


def plain_app(directory: Path) -> FastAPI:
    """Return the application."""
    collection = Engine.open(directory).collection
    assert collection.manifest.encoder is not None
    stored: Any = collection.hybrid.vectors
    vectors = np.ascontiguousarray(stored.vectors)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    ids, encoder = collection.rows.ids, load_own(directory, collection.manifest.encoder.name)
    encoder.encode(["warm"])
    app = FastAPI()

    @app.post("/search")
    def search(query: Query) -> dict[str, Any]:
        scores, rows = index.search(encoder.encode([query.text]), query.k)
        found = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return {"hits": [{"id": ids[row], "score": score} for row, score in found]}

    return app


def main() -> None:
    """Serve on a free port until a signal."""
    faiss.omp_set_num_threads(1)
    app = plain_app(Path(sys.argv[1]))
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # otherwise every response is 40 ms late
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
