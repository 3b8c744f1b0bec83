"""`linker evaluate-pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linker.base.terminal import AsJson, print_json


def evaluate_pairs(
    articles: Annotated[
        Path, typer.Argument(metavar="ARTICLES.npy", help="Article vectors [n, d].", show_default=False)
    ],
    tweets: Annotated[
        Path, typer.Argument(metavar="TWEETS.npy", help="Tweet vectors [m, d].", show_default=False)
    ],
    links: Annotated[
        Path,
        typer.Argument(
            metavar="LINKS.tsv", help="Links, one per line: article TAB tweet.", show_default=False
        ),
    ],
    article_ids: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ids of the articles, one per line, if the links hold ids.",
            show_default=False,
        ),
    ] = None,
    tweet_ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ids of the tweets, one per line.", show_default=False),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Use inner products, without normalising the vectors.")
    ] = False,
    threshold: Annotated[
        list[float] | None,
        typer.Option(
            "-t", "--threshold", help="Count confusions at score ≥ T (repeatable).", show_default=False
        ),
    ] = None,
    until: Annotated[
        list[int] | None,
        typer.Option(
            "-u",
            "--until",
            min=1,
            help="Count the pairs read until N links are found (repeatable).",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score all article × tweet pairs by cosine. Prints the AST tables: precision at r, mRP, mAP, AUC.

    Example: linker evaluate-pairs articles.npy tweets.npy links.tsv
    """
    from linker.papers.all_pairs.evaluate import evaluate_vectors
    from linker.papers.all_pairs.input import read_links, read_vectors

    a, t = read_vectors(articles), read_vectors(tweets)
    pairs = read_links(links, (len(a), article_ids), (len(t), tweet_ids))
    result = evaluate_vectors(a, t, pairs, normalise=not raw, thresholds=threshold or (), until=until or ())
    if as_json:
        print_json(result.to_dict())
    else:
        print(result.text(), end="")
