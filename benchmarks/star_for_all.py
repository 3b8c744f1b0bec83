"""One star for all English sets: its results on sets unseen in training, and the shipped star.

`python -m benchmarks.star_for_all --work FOLDER` trains, for each of four sets and each seed, on the other three and
the headlines of news-topics, runs the trials that FOLDER lacks, and records benchmarks/results/star_for_all.json:
reciprocal ranks of the star, of the mean of its vectors, of BM25 and of the untuned hybrids, with paired
randomisation tests. `--ship OUT` trains on all of them and writes the model instead (in the package:
linker/encoders/models/star).

The word vectors are trained as a mean encoder, on links and documents (inverse cloze pairs); averaged with the
pretrained vectors (Wortsman et al., 2022) they generalise to unseen sets. Weights of idf, count and first position in
the relay's keys, and α, are learned from half of the links, over vectors learned from the other half.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.support.ast_data import rank_dense
from benchmarks.support.attention_training import Recipe, Steps, cloze_loss, dropped, encode, window
from benchmarks.support.common import kept, shared_data
from benchmarks.support.english_sets import DEPTH, LENGTH, MORE, SETS, VECTORS, Part, read, tokenizer
from benchmarks.support.harness import Arguments, Results, benchmark
from indexes.fusion import Fusion, fuse
from linker.encoders import folder as folders
from linker.encoders.bag import sif_scaled
from linker.encoders.configs import PRESETS, StarConfig
from linker.encoders.loading import load_encoder
from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import load_word_vectors
from linker.evaluation.significance import randomisation
from linker.training.compact_star import CompactStar
from linker.training.losses import info_nce
from linker.training.vectors import token_counts, unit_spread

SEEDS = (0, 1, 2)
CONFIG = replace(PRESETS["recommended"], dim=128)
MEAN = Recipe(mean_only=True, stream=7)
KEYS = Recipe(vectors=0.0, inputs=1e-2, alpha=5e-3, links="second")
STEPS, KEY_STEPS = 200, 120
LINKS, CLOZE = 256, 512  # links, and cloze pairs, per step
SHARE = 0.5  # weight of the learned vectors; the pretrained ones get the rest
NOTES = """Trained by `python -m benchmarks.star_for_all --ship` on links of English statements, tweets, headlines and
manual pages, from the word vectors of a distilled sentence encoder (MIT). docs/training.md says what it finds."""
Weights = dict[str, Any]


def pretrained(parts: Sequence[Part], seed: int) -> npt.NDArray[np.float32]:
    """Return the pretrained vectors, weighted by the sets' frequencies, with mean row length 1."""
    matrix = load_word_vectors(shared_data() / VECTORS, seed=seed).matrix
    ids: Any = [text for part in parts for text in (*part.documents, *part.texts)]
    return unit_spread(sif_scaled(matrix, token_counts(ids, len(matrix)), 1e-3))


def frequencies(parts: Sequence[Part], size: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return how many documents have each token, int64 [size], and the number of documents."""
    documents = [d for part in parts for d in part.documents]
    return np.bincount(np.concatenate([np.unique(d) for d in documents]), minlength=size), len(documents)


def idf_of(found: npt.NDArray[np.int64], documents: int) -> npt.NDArray[np.float64]:
    idf = np.log(1 + (documents - found + 0.5) / (found + 0.5))
    return np.asarray(idf / idf.max())


def learn(model: CompactStar, parts: Sequence[Part], recipe: Recipe, total: int) -> None:
    """Train in place; a step has links and windows of documents of one set each, drawn by the root of its size."""
    rng = np.random.default_rng([recipe.seed, recipe.stream])
    torch.manual_seed(recipe.seed)
    links = [part.half(recipe.links) for part in parts]
    linked: list[dict[int, set[int]]] = [{} for _ in parts]
    for pairs, targets in zip(links, linked, strict=True):
        for text, document in pairs:
            targets.setdefault(text, set()).add(document)
    of_links, of_documents = (
        np.sqrt(sizes) for sizes in ([*map(len, links)], [len(p.documents) for p in parts])
    )
    steps = Steps(model, recipe, total)
    for _ in range(total):
        number = int(rng.choice(len(parts), p=of_links / of_links.sum()))
        pairs = links[number]
        rows = rng.choice(len(pairs), min(LINKS, len(pairs) // 4), replace=False)
        loss = _loss(model, parts[number], [pairs[i] for i in rows], linked[number], recipe, rng)
        documents = parts[int(rng.choice(len(parts), p=of_documents / of_documents.sum()))].documents
        steps.step(loss + cloze_loss(model, documents, recipe, min(CLOZE, len(documents) // 2), rng))


def _loss(
    model: CompactStar, part: Part, pairs: Sequence[tuple[int, int]], linked: dict[int, set[int]], recipe: Recipe,
    rng: np.random.Generator,
) -> torch.Tensor:  # fmt: skip
    rows, columns = (list(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
    place = {document: i for i, document in enumerate(columns)}
    positives = torch.zeros(len(rows), len(columns), dtype=torch.bool)
    for row, text in enumerate(rows):
        positives[row, [place[d] for d in linked[text] if d in place]] = True
    texts = model(dropped([part.texts[t] for t in rows], recipe.dropout, rng))
    documents = model(dropped([window(part.documents[d], rng) for d in columns], recipe.dropout, rng))
    return info_nce(texts, documents, positives, recipe.temperature)


def weights(parts: Sequence[Part], seed: int, path: Path) -> Weights:
    """Return the weights learned on some sets, cached in a file: vectors, inputs of the keys, and raw α."""
    if not path.exists():
        start, begun = pretrained(parts, seed), time.process_time()
        idf = idf_of(*frequencies(parts, len(start)))
        whole, half = (CompactStar(start, CONFIG, idf, seed) for _ in range(2))
        learn(whole, parts, replace(MEAN, seed=seed), STEPS)
        learn(half, parts, replace(MEAN, seed=seed, links="first"), STEPS)
        learn(half, parts, replace(KEYS, seed=seed), KEY_STEPS)
        found = {"vec": whole.star.embedding.weight.detach(), "inputs": half.inputs.detach()}
        found |= {"raw": half.relay.raw_alpha.detach(), "cpu_s": torch.tensor(time.process_time() - begun)}
        torch.save(found, path)
    return dict(torch.load(path, weights_only=True))


def star_of(parts: Sequence[Part], seed: int, path: Path, share: float = SHARE) -> CompactStar:
    """Return the star of the learned weights; `share` is the learned vectors' weight, the pretrained get the rest."""
    learned, start = weights(parts, seed, path), pretrained(parts, seed)
    vectors = (1 - share) * start + share * learned["vec"].numpy()
    star = CompactStar(vectors.astype(np.float32), CONFIG, idf_of(*frequencies(parts, len(start))), seed)
    with torch.no_grad():
        star.inputs.copy_(learned["inputs"])
        star.relay.raw_alpha.copy_(learned["raw"])
    return star


def judge(star: CompactStar, test: Part) -> dict[str, npt.NDArray[np.float64]]:
    """Return the reciprocal ranks of a set's texts for the star, its mean and a star without learned inputs."""
    found = {"BM25": test.reciprocal(test.bm25[0])}
    learned = star.inputs.detach().clone()
    for name, mean, inputs in (("mean", True, 0), ("star, untrained", False, 0), ("star", False, 1)):
        star.mean_only, star.inputs.data = mean, inputs * learned
        dense = rank_dense(
            encode(star, [test.texts[t] for t in test.judged]), encode(star, test.documents), DEPTH
        )
        found[name] = test.reciprocal(dense[0])
        found[f"{name} + BM25"] = test.reciprocal(fuse([test.bm25, dense], Fusion(), DEPTH)[0])
    return found


def trial(left: str, seed: int, work: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Return the reciprocal ranks on a held-out set, cached in `work`."""

    def run() -> dict[str, npt.NDArray[np.float64]]:
        parts = [read(name, work) for name in (*SETS, *MORE) if name != left]
        figures = judge(star_of(parts, seed, work / f"weights-{left}-{seed}.pt"), read(left, work))
        print(
            left,
            seed,
            {k: round(float(v.mean()), 4) for k, v in figures.items()},
            file=sys.stderr,
            flush=True,
        )
        return figures

    return dict(kept(work / f"ranks-{left}-{seed}.npz", run))


def summary(by_seed: Sequence[dict[str, npt.NDArray[np.float64]]]) -> dict[str, Any]:
    """Return each system's MRR and S@1 over seeds, and the star's leads with p-values, for the mean over seeds."""
    ranks = {name: np.array([found[name] for found in by_seed]) for name in by_seed[0]}
    rows: dict[str, Any] = {"texts": ranks["BM25"].shape[1], "seeds": len(by_seed)}
    for name, found in ranks.items():
        rows[name] = {"mrr": round(float(found.mean()), 4), "s1": round(float((found == 1).mean()), 4)}
        rows[name]["by_seed"] = [round(float(f.mean()), 4) for f in found]
    for name, against in (("star", "mean"), ("star", "star, untrained"), ("star + BM25", "BM25")):
        p = randomisation(ranks[name].mean(axis=0), ranks[against].mean(axis=0))
        lead = {"lead": round(float((ranks[name] - ranks[against]).mean()), 4), "p": round(p, 4)}
        rows[name].setdefault("against", {})[against] = lead
    return rows


def ship(work: Path, out: Path) -> None:
    """Write the star of all sets as a model that `linker train` could have written."""
    parts = [read(name, work) for name in (*SETS, *MORE)]
    compact = star_of(parts, 0, work / "weights-none-0.pt")
    config: StarConfig = replace(CONFIG, key_inputs=True)
    encoder = TextEncoder.new(config, tokenizer(), LENGTH)
    star = encoder.module
    assert isinstance(star, StarTransformer)
    assert star.key_inputs is not None
    star.load_state_dict(compact.star.state_dict(), strict=False)
    star.key_inputs.set_idf(*frequencies(parts, tokenizer().size))
    with torch.no_grad():
        star.key_inputs.weight.copy_(compact.inputs)
    folders.save(encoder, out, NOTES)


def costs(work: Path, texts: int = 200) -> dict[str, float]:
    """Return the CPU seconds for a thousand bbc-news stories, with the star and with MiniLM on 256 tokens."""
    from benchmarks.support.rank_data import documents_for

    stories = [d.full_text for d in documents_for("bbc-news")][:texts]
    found = {}
    for name in ("star", "minilm"):
        encoder = load_encoder(name)
        encoder.encode(stories[:8])
        start = time.process_time()
        encoder.encode(stories)
        found[name] = round((time.process_time() - start) * 1000 / len(stories), 2)
    return found


@benchmark(
    work=(Path, "folder that keeps ids, weights and ranks"),
    trials=([], "SET/SEED: run these and record nothing"),
    report=(False, "record the seeds that are there, run none"),
    ship=(Path | None, "train on all sets, write the model here, and record nothing"),
)
def measured(options: Arguments) -> Results | None:
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    for one in options.trials:
        left, seed = one.split("/")
        trial(left, int(seed), options.work)
    if options.ship:
        ship(options.work, options.ship)
    if options.trials or options.ship:
        return None
    seeds_of = {
        left: [s for s in SEEDS if not options.report or (options.work / f"ranks-{left}-{s}.npz").exists()]
        for left in SETS
    }
    sets = {left: summary([trial(left, s, options.work) for s in seeds]) for left, seeds in seeds_of.items()}
    return {"sets": sets, "cpu_s_per_1000_stories": costs(options.work)}
