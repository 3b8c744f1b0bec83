"""Imports from MTEB for its tests, and a custom task; separate, since importing MTEB takes ten seconds."""

from typing import Any

import mteb
import numpy as np
from mteb.mocks.mock_tasks import MockRerankingTask, MockRetrievalTask, MockSTSTask
from mteb.models import EncoderProtocol, SearchProtocol

from linker.integrations.mteb import LinkerEncoder, LinkerSearch

__all__ = [
    "EncoderProtocol", "LetterTask", "LinkerEncoder", "LinkerSearch", "MockRerankingTask", "MockSTSTask",
    "SearchProtocol", "score",
]  # fmt: skip
LETTERS = "abcdefg"


class LetterTask(MockRetrievalTask):  # type: ignore[misc]  # mteb is not followed
    """Thirty documents of letters with awkward ids; a query's document repeats its letters."""

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        from datasets import Dataset  # type: ignore[import-untyped]  # it has no types

        random = np.random.default_rng(0)
        texts = [" ".join(random.choice(list(LETTERS), size=n)) for n in random.integers(3, 9, 30)]
        corpus = [{"id": f"d {n}/ü", "title": "t" if n % 2 else "", "text": t} for n, t in enumerate(texts)]
        queries = [{"id": f"q{n}", "text": texts[n][:7]} for n in range(10)]
        split = {
            "corpus": Dataset.from_list(corpus), "queries": Dataset.from_list(queries),
            "relevant_docs": {f"q{n}": {f"d {n}/ü": 1} for n in range(10)}, "top_ranked": None,
        }  # fmt: skip
        self.dataset = {"default": {"test": split, "val": split}}
        self.data_loaded = True


def run(model: Any, task: Any) -> Any:
    return mteb.evaluate(model, task, cache=None, show_progress_bar=False, co2_tracker=False)


def score(result: Any) -> float:
    (task,) = result.task_results
    return float(task.get_score())
