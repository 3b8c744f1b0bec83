"""Compare two systems on the same queries with a paired randomisation test."""

import random

from linker.evaluation.comparison import compare

rng = random.Random(0)
qrels = {f"q{n}": {f"q{n}-right": 1} for n in range(200)}


def system(errors: float) -> dict[str, dict[str, float]]:
    """Return a run that ranks a wrong document first for a share `errors` of the queries."""
    return {
        query: {f"{query}-right": 1.0, f"{query}-wrong": 2.0 if rng.random() < errors else 0.0}
        for query in qrels
    }


print(compare(qrels, [system(0.30), system(0.15)], ["MRR", "success.1"]).text())
