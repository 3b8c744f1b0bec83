"""A map of documents as an SVG: the t-SNE of their vectors (van der Maaten & Hinton, 2008), with a text per point."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from indexes.errors import importing
from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.base.printable import NOT_XML
from linker.encoders.interface import Encoder

MOST, FEWEST = 300, 5  # maximum number of documents on a map
WIDTH, HEIGHT, MARGIN = 1000, 700, 60
BLUE = "#1f77b4"
LETTER, LINE = 5.2, 11  # approximate width of a letter and height of a line in a label
Points = npt.NDArray[np.float64]
# One colour per article: Matplotlib's tab10.
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip


def draw_documents(encoder: Encoder, documents: Sequence[Document], path: Path, most: int = MOST) -> Path:
    """Draw at most `most` documents, spread evenly over the corpus, as an SVG file and return its path.

    A point's tooltip is its document's text; its label, if there is room, the first words. Raises InputError for
    fewer than five documents, MissingExtraError without scikit-learn.
    """
    if len(documents) < FEWEST:
        raise InputError(f"a map needs at least {FEWEST} documents; there are {len(documents)}")
    chosen = [documents[int(i)] for i in np.unique(np.linspace(0, len(documents) - 1, most).astype(int))]
    points = on_paper(tsne(encoder.encode([d.full_text for d in chosen])))
    size = f"{len(chosen)} of {len(documents)} documents"
    caption = f"t-SNE of {size}. Neighbours are similar; distances between groups mean little."
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, as_svg(points, [cleaned(d.full_text) for d in chosen], caption).encode())
    return path


def tsne(vectors: npt.NDArray[np.float32]) -> Points:
    """Return the t-SNE of vectors [n, d], float64 [n, 2], reproducibly. Raises MissingExtraError."""
    with importing("a map of documents (by scikit-learn)", "plot"):
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    with threadpool_limits(1):  # one thread, so that the order of sums is fixed
        places = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors)
    return np.asarray(places, dtype=np.float64)


def on_paper(places: Points) -> Points:
    """Return coordinates [n, 2] scaled to the page."""
    low, span = places.min(0), np.ptp(places, axis=0).clip(1e-9)
    paper: Points = MARGIN + (places - low) / span * (np.array([WIDTH, HEIGHT]) - 2 * MARGIN)
    return paper


def as_svg(
    points: Points,
    texts: Sequence[str],
    caption: str,
    colours: Sequence[str] | None = None,
    legend: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the picture of points [n, 2] with their texts as tooltips; `legend`: colours and their meanings."""
    colours = colours or [BLUE] * len(texts)
    labels = [text if len(text) <= 24 else text[:24].rsplit(" ", 1)[0] + "…" for text in texts]
    shown = _with_room(points, labels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="9">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for (x, y), text, label, is_shown, colour in zip(points, texts, labels, shown, colours, strict=True):
        word = f'<text x="{x + 5:.1f}" y="{y + 3:.1f}">{escape(label)}</text>' if is_shown else ""
        parts.append(
            f'<g><title>{escape(text)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" '
            f'fill-opacity="0.7"/>{word}</g>'
        )
    for row, (colour, name) in enumerate(legend, 1):
        parts.append(
            f'<rect x="8" y="{LINE * row}" width="8" height="8" fill="{colour}"/>'
            f'<text x="20" y="{LINE * row + 8}" class="legend">{escape(name)}</text>'
        )
    parts.append(f'<text x="{MARGIN}" y="{HEIGHT - 15}" font-size="12">{escape(caption)}</text></svg>')
    return "\n".join(parts) + "\n"


def _with_room(points: Points, labels: Sequence[str]) -> list[bool]:
    """Return, for each label, whether it fits on the page without overlapping an earlier one."""
    boxes: list[tuple[float, float, float]] = []
    shown = []
    for (x, y), label in zip(points, labels, strict=True):
        end = x + 5 + LETTER * len(label)
        free = end < WIDTH and all(end < a or x > b or abs(y - c) > LINE for a, b, c in boxes)
        shown.append(free)
        if free:
            boxes.append((x, end, y))
    return shown


def cleaned(text: str, most: int = 300) -> str:
    """Return a text on one line of at most `most` characters, without characters that XML forbids."""
    flat = " ".join(NOT_XML.sub(" ", text).split())
    return flat if len(flat) <= most else flat[:most] + "…"


def draw_posts(
    encoder: Encoder,
    posts: Mapping[str, str],
    links: Iterable[tuple[str, str]],
    path: Path,
    titles: Mapping[str, str] | None = None,
) -> Path:
    """Draw the posts of the ten articles with the most (at least two) posts as an SVG file and return its path.

    `posts`: texts by id; `links`: ids (post, article); links of other posts are ignored; `titles`: names of articles
    for the legend instead of ids. A post linked to several of the articles has the first one's colour. Raises
    InputError for fewer than five posts, MissingExtraError without scikit-learn.
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
    caption = f"t-SNE of {len(texts)} posts linked to {len(chosen)} articles. Neighbours are similar."
    picture = as_svg(
        on_paper(tsne(encoder.encode(texts))), list(map(cleaned, texts)), caption, colours, legend
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, picture.encode())
    return path
