"""A CrossEncoder of sentence-transformers as a reranker: it scores a query with the best passages of a document."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from indexes.errors import importing
from indexes.interface import ScoreArray
from indexes.text.rewriting import WORD
from linker.base.errors import InputError
from linker.base.files import read_json
from linker.encoders.foreign import check_foreign
from linker.encoders.model_folder import CONFIG

PASSAGES = 2  # passages read per document
BATCH = 32  # passages at a time
TOKENS = 256  # maximum number of tokens in a query and a passage together
_WORD = re.compile(WORD)
WORDS = 120  # words per passage
STEP = 60  # words from one passage to the next


def is_cross_encoder(folder: Path) -> bool:
    """Return whether a folder holds a sequence classification transformer, by its config.json."""
    if not (folder / CONFIG).is_file():
        return False
    settings = read_json(folder / CONFIG)
    names = settings.get("architectures") if isinstance(settings, dict) else None
    return isinstance(names, list) and any(str(n).endswith("ForSequenceClassification") for n in names)


class CrossEncoderScorer:
    """Scores a query and a document by the best of the document's passages; a higher score is better."""

    def __init__(self, folder: Path) -> None:
        """Raises InputError if the folder holds code, pickles or a model of several labels; MissingExtraError."""
        check_foreign(folder)
        with importing("reranking", "pretrained"):
            import torch
            from sentence_transformers import CrossEncoder
        try:
            self._model = CrossEncoder(
                str(folder), local_files_only=True, trust_remote_code=False, max_length=TOKENS,
                # explicit, because a class named in the folder would be imported
                activation_fn=torch.nn.Identity(), model_kwargs={"use_safetensors": True},
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise InputError(f"{folder} cannot be opened as a CrossEncoder: {str(e).splitlines()[0]}") from e
        if self._model.num_labels != 1:
            raise InputError(
                f"{folder} has {self._model.num_labels} labels: a reranker needs a CrossEncoder with one score"
            )

    def score(self, pairs: Sequence[tuple[str, str]]) -> ScoreArray:
        """Return the score of each (query, document text), float32 [n]: the highest of its passages."""
        read = [best_passages(query, text, PASSAGES) for query, text in pairs]
        flat = [(query, part) for (query, _), parts in zip(pairs, read, strict=True) for part in parts]
        if not flat:
            return np.zeros(0, dtype=np.float32)
        scores = np.asarray(
            self._model.predict(flat, batch_size=BATCH, show_progress_bar=False), dtype=np.float32
        )
        edges = np.cumsum([0, *(len(parts) for parts in read)])[:-1]
        return np.maximum.reduceat(scores, edges)


def best_passages(query: str, text: str, count: int, *, words: int = WORDS, step: int = STEP) -> list[str]:
    """Return the `count` passages of a text that cover a query best, best first; a short text is one passage.

    A passage counts each query word in it once, with weight log(1 + passages ÷ passages with the word). Equal
    passages are in text order.
    """
    places = [(match.start(), match.end(), match[0].lower()) for match in _WORD.finditer(text)]
    if len(places) <= words:
        return [text]
    step = min(step, words)  # so that no word is left out
    starts = range(0, len(places) - words + step, step)
    query_words = set(_WORD.findall(query.lower()))
    overlaps = [{word for *_, word in places[start : start + words]} & query_words for start in starts]
    frequencies = Counter(word for overlap in overlaps for word in overlap)
    scores = [sum(math.log1p(len(overlaps) / frequencies[word]) for word in overlap) for overlap in overlaps]
    best = sorted(range(len(overlaps)), key=lambda i: (-scores[i], i))[:count]
    return [text[places[starts[i]][0] : places[min(starts[i] + words, len(places)) - 1][1]] for i in best]
