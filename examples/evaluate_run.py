"""Compute trec_eval's measures of a run, with a bootstrap confidence interval."""

from linker import evaluate
from linker.evaluation.evaluator import Resampling

qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1, "d": 1}, "q3": {"e": 1}}
run = {"q1": {"a": 2.0, "b": 1.5}, "q2": {"x": 3.0, "c": 2.0, "d": 1.0}, "q3": {"x": 1.0, "y": 0.5}}

result = evaluate(qrels, run, ["MRR", "success.1", "map"], intervals=Resampling(1000, seed=1))
for measure, value in result.items():
    print(f"{measure:12} {value:.4f}")
low, high = result.intervals["recip_rank"]
print(f"95 % interval of MRR: {low:.3f} to {high:.3f}")
