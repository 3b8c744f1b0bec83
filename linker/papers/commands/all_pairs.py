"""`linker evaluate-pairs`."""

from pathlib import Path
from typing import Annotated

from linker.base.options import Opt
from linker.base.terminal import AsJson, print_json


def evaluate_pairs(
    articles: Annotated[Path, Opt("Article vectors [n, d].", "", metavar="ARTICLES.npy")],
    tweets: Annotated[Path, Opt("Tweet vectors [m, d].", "", metavar="TWEETS.npy")],
    links: Annotated[Path, Opt("Links, one per line: article TAB tweet.", "", metavar="LINKS.tsv")],
    article_ids: Annotated[
        Path | None, Opt("Ids of the articles, one per line, if the links hold ids.", metavar="FILE")
    ] = None,
    tweet_ids: Annotated[Path | None, Opt("Ids of the tweets, one per line.", metavar="FILE")] = None,
    raw: Annotated[bool, Opt("Use inner products, without normalising the vectors.", "--raw")] = False,
    threshold: Annotated[
        list[float] | None, Opt("Count confusions at score ≥ T (repeatable).", "-t --threshold")
    ] = None,
    until: Annotated[
        list[int] | None,
        Opt("Count the pairs read until N links are found (repeatable).", "-u --until", low=1),
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
