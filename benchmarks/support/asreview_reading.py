"""Read topics with ASReview's own simulator, in an environment that has `asreview`; linker need not be installed in it.

    PYTHON benchmarks/support/asreview_reading.py TASK.json OUT.jsonl

TASK.json: {"titles": [...], "texts": [...], "share": .95, "most": 2500, "topics": [{"name", "relevant": [row, …],
"seeds": [row, …]}]}. The model is ASReview's default, elas_u4. Documents are read as `asreview simulate` reads them:
in file order until a relevant and an irrelevant one are known, then in the order of the model, which is trained after
each label. Reading ends when `share` of the relevant documents other than the seeds has been found, or after `most`
documents. For each topic, the script writes the relevance of the documents in the order in which they were read, and
the CPU seconds, excluding the TF-IDF of the corpus, which is computed once. It skips topics that OUT.jsonl already
holds.
"""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import asreview
import numpy as np
import pandas as pd
from asreview.learner import ActiveLearningCycle
from asreview.models.models import get_ai_config
from asreview.simulation.simulate import Simulate


class Enough:
    """Stops when `need` relevant documents in addition to the seeds were found, or after `most` reads."""

    def __init__(self, seeds: int, need: int, most: int) -> None:
        self.seeds, self.need, self.most = seeds, need, most

    def stop(self, results: Any, labels: Any) -> bool:
        read = len(results) - self.seeds
        return bool(read >= self.most or results["label"].sum() - self.seeds >= self.need)


def top_down(labels: Any, seeds: list[int]) -> list[int]:
    """Return the rows, in the order of the file, up to the first one that is not relevant."""
    rows = [row for row in range(len(labels)) if row not in seeds]
    return rows[: int(np.argmin(labels[rows])) + 1]


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    out = Path(sys.argv[2])
    done = {json.loads(line)["topic"] for line in out.read_text().splitlines()} if out.exists() else set()
    model = get_ai_config("elas_u4")["value"]
    features = ActiveLearningCycle.from_meta(model).transform(
        pd.DataFrame({"title": task["titles"], "abstract": task["texts"]})
    )
    for topic in task["topics"]:
        if topic["name"] in done:
            continue
        labels = np.zeros(len(task["texts"]), dtype=int)
        labels[topic["relevant"]] = 1
        seeds = topic["seeds"]
        need = math.ceil(task["share"] * (len(topic["relevant"]) - len(seeds)))
        simulation = Simulate(
            features, labels, ActiveLearningCycle.from_meta(model), stopper=Enough(len(seeds), need, task["most"]),
            skip_transform=True, print_progress=False,
        )  # fmt: skip
        # ASReview's querier TopDown does the same, but does not accept a sparse matrix.
        simulation.label([*seeds, *top_down(labels, seeds)])
        start = time.process_time()
        simulation.review()
        seconds = time.process_time() - start
        read = simulation._results["label"].tolist()[len(seeds) :]
        with out.open("a", encoding="utf-8") as file:
            line = {"topic": topic["name"], "read": read, "cpu_s": seconds, "version": asreview.__version__}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
