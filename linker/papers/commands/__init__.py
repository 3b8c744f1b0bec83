"""The commands of the replications. The command line finds them through the entry points in pyproject.toml."""

from linker.papers.commands import bucc as _bucc
from linker.papers.commands import similarity as _similarity
from linker.papers.commands import similarity_scores as _scores
from linker.papers.commands import sts as _sts
from linker.papers.commands.all_pairs import evaluate_pairs

__all__ = ["bucc_group", "evaluate_pairs", "similarity_group", "sts_group"]

bucc_group = (
    "Prepare data and evaluate runs of BUCC 2015.",
    (_bucc.prepare, _bucc.dictionary, _bucc.evaluate),
)
similarity_group = (
    "Score how similar two news articles are. Uses named entities.",
    (_similarity.train, _scores.predict, _scores.evaluate, _scores.calibrate),
)
sts_group = (
    "Train, apply and evaluate sentence-pair scorers. They also serve as rerankers.",
    (_sts.train, _sts.predict, _sts.evaluate),
)
