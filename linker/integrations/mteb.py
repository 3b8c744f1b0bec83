"""MTEB: an encoder, or hybrid search with BM25 and vectors, as a model of the benchmark (extra `mteb`).

`mteb.evaluate(LinkerSearch("model"), tasks)` evaluates retrieval as in `linker search`, and
`mteb.evaluate(LinkerEncoder("model"), tasks)` evaluates any task based on vectors.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from indexes.errors import importing
from indexes.hybrid import Mode
from indexes.interface import BackendUnavailableError, Document, Matrix
from linker.encoders.interface import Encoder, encode_queries
from linker.encoders.loading import load_encoder
from linker.engine.building import create
from linker.engine.engine import Engine

with importing("MTEB", "mteb"):
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
    from mteb.types import PromptType

Dataset = Any  # a class of the library `datasets`, which has no types
BATCH = 256  # documents per batch of an index, queries per search


class LinkerEncoder(AbsEncoder):  # type: ignore[misc]  # the library has no types that we can check against
    """An encoder as MTEB's EncoderProtocol; cosines are its similarity, and the model's own prompts are used."""

    def __init__(
        self, model_name: str | Path, revision: str | None = None, *, device: str | None = None, **_: Any
    ) -> None:
        """Load an encoder as `linker.load_encoder` does, with the same errors; MTEB's `device` is not used."""
        self.model: Encoder = load_encoder(model_name)
        self.mteb_model_meta = _model_meta(Path(model_name).name, self.model, "dense")

    def encode(
        self, inputs: Any, *, prompt_type: PromptType | None = None, batch_size: int = 64, **_: Any
    ) -> Matrix:
        """Return the vectors of all texts of the DataLoader `inputs`, in order, float32 [n, dim]."""
        texts = [text for batch in inputs for text in batch["text"]]
        if prompt_type == PromptType.query:
            return encode_queries(self.model, texts)
        return self.model.encode(texts, batch_size=batch_size)


class LinkerSearch:
    """A linker index as MTEB's SearchProtocol: built over a task's corpus in a temporary folder, then searched."""

    def __init__(
        self,
        encoder: str | Path = "none",
        *,
        mode: Mode | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        """`encoder` is a name or path for `linker.load_encoder`; "none" searches by BM25 alone.

        `mode` is as in `Engine.search`, the `options` as in `linker.create`; `name` is the model's name in results.
        """
        self._encoder, self._mode, self._options = str(encoder), mode, options
        self._loaded = None if self._encoder == "none" else load_encoder(encoder)
        kind = mode or ("hybrid" if self._loaded else "bm25")
        called = name or "-".join([kind, *([Path(encoder).name] if self._loaded else [])])
        self.mteb_model_meta = _model_meta(called, self._loaded, "dense" if kind == "dense" else "sparse")
        self._remove: Callable[[], object] | None = None
        self._engine: Engine | None = None
        self._ids: list[str] = []

    def index(self, corpus: Dataset, **_: Any) -> None:
        """Build the index of a corpus with the columns id, text and, if there are titles, title."""
        self.close()
        folder = tempfile.mkdtemp(prefix="linker-mteb-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder, "index")
        create(path, encoder=self._encoder, **self._options)
        self._engine = Engine(path, encoder=self._loaded)
        self._ids = list(corpus["id"])
        self._engine.add(_document(number, row) for number, row in enumerate(corpus))

    def search(
        self,
        queries: Dataset,
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """Return the scores of the best `top_k` documents by query; in reranking, only of those in `top_ranked`.

        Raises BackendUnavailableError if called before `index`.
        """
        if self._engine is None:
            raise BackendUnavailableError("nothing is indexed yet: MTEB calls `index` first")
        rows, everything = list(queries), len(self._ids)
        k = everything if top_ranked else min(top_k, everything)
        found: dict[str, dict[str, float]] = {}
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            answer = self._engine.search([_query(row) for row in part], max(k, 1), mode=self._mode)
            for row, hits in zip(part, answer.hits, strict=True):
                scores = {self._ids[int(id_)]: float(s) for id_, s in zip(hits.ids, hits.scores, strict=True)}
                found[row["id"]] = _top_k(scores, top_ranked[row["id"]], top_k) if top_ranked else scores
        return found

    def close(self) -> None:
        """Remove the index; the next `index` builds a new one. It is also removed with this object or the process."""
        if self._engine is not None:
            self._engine.close()
        if self._remove is not None:
            self._remove()
        self._engine = self._remove = None


def _model_meta(name: str, encoder: Encoder | None, kind: str) -> Any:
    """Return MTEB's metadata of a model, whose revision is the fingerprint of its encoder."""
    return ModelMeta.create_empty(
        {
            "name": f"linker/{name}",
            "revision": encoder.fingerprint if encoder else "bm25",
            "embed_dim": encoder.dim if encoder else None,
            "similarity_fn_name": ScoringFunction.COSINE,
            "use_instructions": False,
            "model_type": [kind],
        }
    )


def _document(number: int, row: Mapping[str, Any]) -> Document:
    """Return a row of a corpus as a document whose id is the row number: MTEB's ids may contain any character."""
    return Document(str(number), _join(row["text"]), title=row.get("title") or "")


def _query(row: Mapping[str, Any]) -> str:
    return " ".join(filter(None, [_join(row["text"]), row.get("instruction") or ""]))


def _join(text: Any) -> str:
    """Return a text unchanged, or a conversation with one line per turn."""
    if isinstance(text, str):
        return text
    return "\n".join(turn if isinstance(turn, str) else str(turn.get("content", "")) for turn in text or ())


def _top_k(scores: Mapping[str, float], candidates: Sequence[str], k: int) -> dict[str, float]:
    """Return the best k candidates with their scores; candidates that were not found come last."""
    worst = min(scores.values(), default=0.0) - 1
    ranked = sorted(((id_, scores.get(id_, worst)) for id_ in candidates), key=lambda pair: -pair[1])
    return dict(ranked[:k])
