"""Danovitch's tables (methods H): his star and baselines on one budget; all pairs of a test article and a test post.

All models train with the settings of the built-in configuration `ast-paper`; only [encoder] differs between models and,
in two further rows, the treatment of the word vectors.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from linker.base.config import load
from linker.encoders import folder as folders
from linker.encoders.configs import PRESETS
from linker.papers.all_pairs.evaluate import evaluate_vectors
from linker.papers.all_pairs.result import RANKS
from linker.papers.reproduce.cells import Outcome, Study, System, fingerprint
from linker.papers.reproduce.posts import Posts, sets
from linker.training import ready
from linker.training.batches import Pairs
from linker.training.config import TrainConfig
from linker.training.run import joined, read_pairs, run
from linker.training.vectors import start_vectors

# The baselines as in the paper and its author's code, then as in linker, and the mean as a control. Last, the paper's
# variants (iterations, attention by cosine) and an open setting (the word vectors).
MODELS = {
    "gru-author": "GRU, last state",
    "bigru-author": "Bi-GRU, last states",
    "cnn-author": "CNN, widths 1 to 4",
    "ast-paper": "AST",
    "gru": "GRU, mean of states",
    "bigru": "Bi-GRU, mean of states",
    "cnn": "CNN, widths 3 to 5",
    "bag": "mean of word vectors",
    "ast-rescaled": "AST, word vectors of length 1",
    "ast-frozen": "AST, word vectors frozen",
    "ast-two": "AST, two iterations",
    "ast-cosine": "AST, attention by cosine",
}
LAST = ("encoder.pooling=last", "encoder.projection=0")
HEADS = "encoder.head_dim={head}"  # the word vectors' dimensions are divided among the heads
# Models that differ from all built-in configurations: the configuration to start from, and the changes.
FORMS = {
    "gru-author": ("gru", (*LAST, "encoder.hidden={dim}")),
    "bigru-author": ("bigru", (*LAST, "encoder.hidden={half}")),  # {dim} is the sum over both directions
    "cnn-author": ("cnn", ("encoder.widths=[1, 2, 3, 4]", "encoder.filters={dim}")),
    "ast-paper": ("ast-paper", (HEADS,)),
    "ast-rescaled": ("ast-paper", (HEADS, "data.rescale=true")),
    "ast-frozen": ("ast-paper", (HEADS, "training.embedding_lr=0")),
    "ast-two": ("ast-paper", (HEADS, "encoder.layers=2")),
    "ast-cosine": ("ast-paper", (HEADS, "encoder.score=cosine")),
}
# the study's cosine threshold; numbers of links per article at which reading stops
ACCEPTED, UNTIL = 0.7, (1, 3, 5)
MEASURES = ("mAP", "AUC", "mRP", *(f"P@{r}" for r in RANKS))
STUDY = ("links", "others", "precision", "recall", *(f"until {n}" for n in UNTIL))
STUDY_TITLE = (
    f"the same models: pairs with a cosine of at least {ACCEPTED}, and the number of posts read per article"
)
QUICK = ("training.epochs=1",)


def studies(data: Path, work: Path, quick: bool) -> list[Study]:
    """Return a study per set of posts and articles in the folder `data`."""
    return [_study(posts, work, QUICK if quick else ()) for posts in sets(data, work, quick)]


def settings(posts: Posts, model: str, seed: int, dim: int, out: Path, changes: Sequence[str]) -> TrainConfig:
    """Return the settings of `ast-paper` on a set, with another model's [encoder]; `dim`: word vectors' dimension."""
    paths = [
        f"data.queries={posts.queries}",
        f"data.documents={posts.documents}",
        f"data.train={posts.links['train']}",
        *([f"data.dev={posts.links['dev']}"] if "dev" in posts.links else []),
        f"output.path={out}",
        f"data.word_vectors={posts.vectors}",
        f"training.seed={seed}",
    ]
    base, form = FORMS.get(model, (model, ()))
    sizes = {"dim": dim, "half": max(1, dim // 2), "head": max(1, dim // PRESETS["paper"].heads)}
    own = [*paths, *(setting.format(**sizes) for setting in form)]
    other = load(ready.find(Path(base), own), TrainConfig, [*own, *changes])
    if base == "ast-paper":
        return other
    budget = load(ready.find(Path("ast-paper"), paths), TrainConfig, [*paths, *changes])
    return dataclasses.replace(budget, encoder=other.encoder)


def _study(posts: Posts, work: Path, changes: Sequence[str]) -> Study:
    changes = (*posts.settings, *changes)
    first = settings(posts, "ast-paper", 0, 1, work / "none", changes)
    pairs, _ = read_pairs(first)
    test = test_pairs(posts, first)
    _, vectors = start_vectors(first.data, joined(pairs), 0)
    dim, training = int(vectors.shape[1]), first.training
    stamp = fingerprint(posts.files, changes, dim)  # so that no model trained on other data is reused here
    run_of = partial(_cell, posts, dim, work / posts.name / "models" / stamp, changes, test)
    star = MODELS["ast-paper"]
    systems = [
        System(name, partial(run_of, model), chance=True, rival="" if name == star else star)
        for model, name in MODELS.items()
    ]
    title = (
        f"{posts.name}: {len(test.links):,} test links, {len(pairs.links):,} training links; "
        f"{training.epochs} epochs, {training.max_length:,} tokens in training"
    )
    return Study(
        posts.name,
        [(title, MEASURES), (f"{posts.name}, {STUDY_TITLE}", STUDY)],
        systems,
        _reasons(posts, dim, len(test.links)),
        made_of=stamp,
    )


def _reasons(posts: Posts, dim: int, links: int) -> list[str]:
    """Return why figures differ from the paper's: the differences in data and protocol."""
    most = sum(min(1.0, links / rank) for rank in RANKS) / len(RANKS)
    return [
        *([] if posts.official else ["different data and fewer links"]),
        *(
            []
            if "glove" in posts.vectors
            else [f"{dim}-dimensional word vectors in place of the paper's GloVe vectors"]
        ),
        "the first tokens of a text, whereas the author's code keeps the last 1,000",
        f"with {links:,} links, the mRP is at most {most:.3f}",
    ]


def test_pairs(posts: Posts, config: TrainConfig) -> Pairs:
    """Return the test links with all texts and documents."""
    data = dataclasses.replace(config.data, train=posts.links["test"], dev=None)
    return read_pairs(dataclasses.replace(config, data=data))[0]


def _cell(
    posts: Posts, dim: int, models: Path, changes: Sequence[str], test: Pairs, model: str, seed: int
) -> Outcome:
    config = settings(posts, model, seed, dim, models / f"{model}-{seed}", changes)
    encoder = folders.load(run(config, resume=True))
    texts, documents = (sorted({link[side] for link in test.links}) for side in (0, 1))
    links = [(documents.index(d), texts.index(t)) for t, d in test.links]
    articles = encoder.encode([test.documents[d] for d in documents])
    tweets = encoder.encode([test.texts[t] for t in texts])
    found = evaluate_vectors(articles, tweets, links, ranks=RANKS, thresholds=[ACCEPTED], until=UNTIL)
    (accepted,) = found.thresholds
    return Outcome(
        {
            "mAP": found.map_micro,
            "AUC": found.auc_micro,
            "mRP": found.mrp,
            **{f"P@{rank}": value for rank, value in found.precision_at.items()},
            "links": accepted.true_positives,
            "others": accepted.false_positives,
            "precision": accepted.precision,
            "recall": accepted.recall,
            **{f"until {r.links}": r.mean_tweets for r in found.until},
        }
    )
