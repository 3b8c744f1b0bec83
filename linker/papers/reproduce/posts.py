"""Posts linked to articles, as files for training: the AST author's lines, or an unchanged retrieval set."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
import orjson

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.encoders.tokens import Vocabulary, load_word_vectors
from linker.papers.reproduce.cells import QUICK, fingerprint
from linker.scoring.pairs.data import filled_lines, json_object

# Retrieval sets that stand in for the paper's data; ELSEWHERE: corpora that are not in their set's folder.
NAMES = ("tweets2claims", "statements2articles", "descriptions")
ELSEWHERE = {"descriptions": "linked-pages/masked/en.jsonl.gz"}
# The maximum numbers of links per split, and of tokens per text if links are left out: training then takes minutes.
KEPT = {"train": 1000, "dev": 200, "test": 1000}
CUT = ("training.max_length=128", "encoder.max_length=128")
FIELDS = ("url", "article", "text")
SPLITS = ("train", "dev", "test")
HEADER = "query-id\tcorpus-id\tscore"
VECTORS = "word-vectors-en"
GLOVE = 5.0  # mean length of the paper's vectors: GloVe, trained on 840 billion tokens
MIN_COUNT, MOST = 2, 50_000  # word limits, as in [data] of a training file

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Posts:
    """Files of a set: texts, documents, links per split, and word vectors (a path or a training file's name).

    `settings`: those of a training file that differ for this set.
    """

    name: str
    queries: Path
    documents: Path
    links: dict[str, Path]
    vectors: str
    official: bool
    settings: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        """The files that the figures depend on."""
        vectors = Path(self.vectors)
        return [self.queries, self.documents, *self.links.values(), *([vectors] if vectors.is_file() else [])]


def sets(data: Path, work: Path, quick: bool) -> list[Posts]:
    """Return the sets in a folder. Raises InputError if it holds neither form of the data, or a line is malformed."""
    lines = sorted(data.glob("*.jsonl"))
    if any(map(_is_linked, lines)):
        return [_converted(data, lines, work, quick)]
    retrieval = [
        _retrieval(folder, queries, documents, work / folder.name, quick)
        for folder in (data, *(data / name for name in NAMES))
        if (documents := _corpus(folder)) and (folder / "qrels" / "test.tsv").exists()
        for queries in sorted(folder.glob("queries.jsonl*"))[:1]
    ]
    if not retrieval:
        raise InputError(
            f"{data} holds no posts linked to articles: expected JSON lines of {', '.join(FIELDS)} (train.jsonl, "
            "dev.jsonl, test.jsonl, or one file), as the paper's author read them, or a folder with queries.jsonl, "
            "corpus.jsonl and qrels/train.tsv, dev.tsv, test.tsv"
        )
    return retrieval


def _is_linked(path: Path) -> bool:
    _, where, line = next(filled_lines(path), (0, str(path), "{}"))
    return {*FIELDS} <= {*json_object(line, where)}


def _corpus(folder: Path) -> Path | None:
    other = folder.parent / ELSEWHERE.get(folder.name, "corpus.jsonl")
    return next((path for path in (*folder.glob("corpus.jsonl*"), other) if path.exists()), None)


def _retrieval(folder: Path, queries: Path, documents: Path, work: Path, quick: bool) -> Posts:
    """Return a retrieval set; a large one is reduced to sampled links, their documents, and shorter texts.

    If all links are in one file, they are split.
    """
    paths = {split: folder / "qrels" / f"{split}.tsv" for split in SPLITS}
    files = {split: path for split, path in paths.items() if path.exists()}
    rows = {split: _links(path) for split, path in files.items()}
    if len(rows) == 1:
        rows = _split(*rows.values())
    sample = {split: _sampled(lines, QUICK if quick else KEPT[split]) for split, lines in rows.items()}
    if sample == rows and {*sample} == {*files}:
        return Posts(
            folder.name, queries, documents, files, _vectors(folder, documents, queries, work), False
        )
    work.mkdir(parents=True, exist_ok=True)
    for split, lines in sample.items():
        write_atomically(work / f"{split}.tsv", "".join(f"{x}\n" for x in (HEADER, *lines)).encode())
    linked = {line.split("\t")[1] for lines in sample.values() for line in lines}
    corpus = work / "corpus.jsonl"
    records = [
        line for _, where, line in filled_lines(documents) if json_object(line, where).get("_id") in linked
    ]
    write_atomically(corpus, "".join(f"{line.strip()}\n" for line in records).encode())
    links = {split: work / f"{split}.tsv" for split in sample}
    return Posts(folder.name, queries, corpus, links, _vectors(folder, corpus, queries, work), False, CUT)


def _links(path: Path) -> list[str]:
    """Return the lines of a file of links after its header. Raises InputError for a malformed line or no line."""
    lines = [(where, line) for _, where, line in filled_lines(path)][1:]
    if not lines:
        raise InputError(f"{path} holds no link")
    for where, line in lines:
        if line.count("\t") != 2:
            raise InputError(f"{where}: expected query-id, corpus-id and score, separated by tabs")
    return [line for _, line in lines]


def _sampled(lines: list[str], most: int) -> list[str]:
    rows = np.sort(np.random.default_rng(0).permutation(len(lines))[:most])
    return [lines[row] for row in rows.tolist()]


def _converted(data: Path, lines: Sequence[Path], work: Path, quick: bool) -> Posts:
    """Write lines of url, article and text as a retrieval set into `work`; an article is identified by its url."""
    rows = {path.stem: list(_rows(path)) for path in lines}
    if not {"train", "test"} <= {*rows}:
        if len(rows) > 1:
            raise InputError(
                f"{data}: expected train.jsonl and test.jsonl, or one file, not {', '.join(rows)}"
            )
        rows = _split(next(iter(rows.values())))
    folder = work / "posts"
    folder.mkdir(parents=True, exist_ok=True)
    articles: dict[str, str] = {}
    posts: dict[str, str] = {}
    links: dict[str, list[str]] = {split: [HEADER] for split in SPLITS if split in rows}
    for split, lines_of in links.items():
        for url, article, text in rows[split][: QUICK if quick else None]:
            id_, post = (sha256(value.encode()).hexdigest()[:16] for value in (url, text))
            articles.setdefault(id_, article)
            posts.setdefault(post, text)
            lines_of.append(f"{post}\t{id_}\t1")
    for name, texts in (("queries", posts), ("corpus", articles)):
        content = (orjson.dumps({"_id": id_, "text": text}) + b"\n" for id_, text in texts.items())
        write_atomically(folder / f"{name}.jsonl", b"".join(content))
    for split, lines_of in links.items():
        write_atomically(folder / f"{split}.tsv", "".join(f"{x}\n" for x in dict.fromkeys(lines_of)).encode())
    files = {split: folder / f"{split}.tsv" for split in links}
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    return Posts("posts", queries, corpus, files, _vectors(data, corpus, queries, folder), official=True)


def _rows(path: Path) -> Iterator[tuple[str, str, str]]:
    for _, where, line in filled_lines(path):
        fields = json_object(line, where)
        url, article, text = (fields.get(name) for name in FIELDS)
        if not all(isinstance(value, str) and value.strip() for value in (url, article, text)):
            raise InputError(f"{where}: expected {', '.join(FIELDS)}, each a non-empty string")
        yield str(url), str(article), str(text)


def _split(rows: list[Row]) -> dict[str, list[Row]]:
    """Split pairs at random, 80/10/10, since the paper splits by pair."""
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    first, second = round(0.8 * len(rows)), round(0.9 * len(rows))
    parts = (order[:first], order[first:second], order[second:])
    return {split: [rows[row] for row in part] for split, part in zip(SPLITS, parts, strict=True)}


def _vectors(data: Path, documents: Path, queries: Path, work: Path) -> str:
    """Return the word vectors stored with the data, as GloVe's text file or in its format, or else gensim's."""
    folders = (data, data.parent)
    for folder in folders:
        for path in sorted(folder.glob("glove*.txt*")):
            return str(path)
    for folder in folders:
        if (folder / VECTORS).is_dir():
            out = work / f"vectors-{fingerprint((documents, queries))}.txt"
            if not out.exists():
                texts = [
                    " ".join(str(v) for k, v in json_object(line, where).items() if k in ("title", "text"))
                    for path in (documents, queries)
                    for _, where, line in filled_lines(path)
                ]
                work.mkdir(parents=True, exist_ok=True)
                export(folder / VECTORS, texts, out)
            return str(out)
    return "gensim"


def export(source: Path, texts: Sequence[str], path: Path) -> None:
    """Write a line `word x x …` for each word of `texts` that has a vector in `source`.

    A word of several pieces gets their mean. Vectors are scaled to GloVe's mean length, since the paper keeps
    lengths; the words of the texts stand in for GloVe's vocabulary.
    """
    vocabulary = Vocabulary.build(texts, min_count=MIN_COUNT, max_size=MOST)
    vectors = load_word_vectors(source, vocabulary)
    scale = GLOVE / np.linalg.norm(vectors.matrix[vectors.known], axis=1).mean()
    lines = [
        f"{word} {' '.join(f'{x:.5g}' for x in scale * vector)}\n"
        for word, vector, known in zip(vocabulary.tokens, vectors.matrix, vectors.known, strict=True)
        if known
    ]
    write_atomically(path, "".join(lines).encode())
