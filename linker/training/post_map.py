"""A map of posts as an SVG, coloured by linked article (as in Danovitch's figure 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.encoders.interface import Encoder
from linker.training.document_map import FEWEST, as_svg, cleaned, on_paper, tsne

# One colour per article: Matplotlib's tab10.
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip


def draw_posts(
    encoder: Encoder,
    posts: Mapping[str, str],
    links: Iterable[tuple[str, str]],
    path: Path,
    titles: Mapping[str, str] | None = None,
) -> Path:
    """Draw the posts of the ten articles with the most (at least two) posts as an SVG file and return its path.

    `posts`: texts by id; `links`: ids (post, article); links without a text here do not count; `titles`: names of
    articles for the legend instead of ids. A post linked to several of the articles has the first one's colour.
    Raises InputError for fewer than five posts, MissingExtraError without scikit-learn.
    """
    of_article: dict[str, list[str]] = {}
    for post, article in dict.fromkeys(links):
        if post in posts:
            of_article.setdefault(article, []).append(post)
    several = [article for article, linked in of_article.items() if len(linked) > 1]
    chosen = sorted(several, key=lambda article: -len(of_article[article]))[: len(COLOURS)]  # stable
    article_of = {post: article for article in reversed(chosen) for post in of_article[article]}
    if len(article_of) < FEWEST:
        raise InputError(
            f"a map needs at least {FEWEST} posts of articles with two posts or more; there are {len(article_of)}"
        )
    texts = [posts[post] for post in article_of]
    colours = [COLOURS[chosen.index(article)] for article in article_of.values()]
    legend = [(COLOURS[i], cleaned((titles or {}).get(a) or a, 60)) for i, a in enumerate(chosen)]
    caption = f"t-SNE of {len(texts)} posts linked to {len(chosen)} articles. Near means alike."
    drawn = as_svg(on_paper(tsne(encoder.encode(texts))), list(map(cleaned, texts)), caption, colours, legend)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, drawn.encode())
    return path
