"""`train`: a model from a TOML configuration."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from indexes.errors import IndexesError, importing
from linker.base.config import load
from linker.base.errors import InputError, LinkerError
from linker.base.logs import logger
from linker.base.progress import Progress, listening
from linker.training import ready


def train(
    config: str | Path,
    out: str | Path | None = None,
    *,
    overrides: Sequence[str] | Mapping[str, object] = (),
    resume: bool = False,
    plots: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Train an encoder and return the model's folder, which `load_encoder` reads.

    `config` is a TOML file or the name of a built-in configuration; `overrides` replace its keys, for example
    {"training.lr": 0.001} or ["training.lr=0.001"] (`--set`), and `out` replaces output.path. With `plots`, the
    training run is plotted into MODEL/training if the extra `plot` is installed. Raises ConfigError for an invalid
    configuration, LinkerError if the data or the folder cannot be used, MissingExtraError without the extra `train`.
    """
    if isinstance(overrides, Mapping):
        overrides = [_assignment(key, value) for key, value in overrides.items()]
    settings = [*overrides, *([] if out is None else [_assignment("output.path", str(out))])]
    path = ready.find(Path(config), settings)
    if is_first():
        logger.info("training as %s says: loading PyTorch", path)  # loading it takes seconds
    with importing("training", "train"):
        from linker.training.config import TrainConfig
        from linker.training.run import run

    configuration = load(path, TrainConfig, settings)
    with listening(progress):
        model = run(configuration, resume=resume, log=logger.info)
    if plots and is_first():
        try:
            draw(model, configuration.data.documents)
        except (LinkerError, IndexesError) as e:
            logger.info("no plots: %s", e)  # not an error: the model is complete without plots
    return model


def is_first() -> bool:
    """Return whether this process prints: the only one, or, under torchrun, the first."""
    return os.environ.get("RANK", "0") == "0"


def _assignment(key: str, value: object) -> str:
    """Return an override in the syntax of `--set`; JSON writes strings, numbers, booleans and lists as TOML does."""
    return f"{key}={orjson.dumps(value, default=str).decode()}"


def draw(
    model: Path,
    documents: Path | None,
    out: Path | None = None,
    *,
    queries: Path | None = None,
    qrels: Path | None = None,
) -> list[Path]:
    """Plot a model's training run and return the plots' paths; if given, also maps of `documents` and posts.

    A map of posts needs both `queries` and `qrels`. Raises InputError if only one of them is given.
    """
    from linker.training.plots import METRICS, plot_metrics

    if (queries is None) != (qrels is None):
        present, missing = ("`queries`", "`qrels`") if qrels is None else ("`qrels`", "`queries`")
        raise InputError(f"a map of posts needs both their texts and their links: add {missing} to {present}")
    plots = plot_metrics(model, out)
    folder, corpus = out or model / METRICS.parent, []
    if documents is not None:
        from indexes.interface import Document
        from linker.corpora import read_corpus
        from linker.encoders.loading import load_encoder
        from linker.training.document_map import draw_documents

        corpus = [record for record in read_corpus(documents) if isinstance(record, Document)]
        plots.append(draw_documents(load_encoder(model), corpus, folder / "documents.svg"))
    if queries is not None and qrels is not None:
        titles = {document.id: document.title or document.text for document in corpus}
        plots.append(_posts(model, queries, qrels, titles, folder / "posts.svg"))
    return plots


def _posts(model: Path, queries: Path, qrels: Path, titles: Mapping[str, str], path: Path) -> Path:
    """Plot a map of the posts in `queries`, coloured by the articles linked in `qrels`; return its path."""
    from linker.corpora import read_queries
    from linker.encoders.loading import load_encoder
    from linker.evaluation.reading.judgements import merged_qrels
    from linker.training.document_map import draw_posts

    judged = merged_qrels([qrels])
    links = [(post, article) for post, of in judged.items() for article, grade in of.items() if grade > 0]
    posts = {query.id: query.text for query in read_queries(queries)}
    return draw_posts(load_encoder(model), posts, links, path, titles)
