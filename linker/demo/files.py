"""The demo's news as files, for the tutorials: `python -m linker.demo.files news`."""

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from indexes.errors import IndexesError
from linker.base.files import write_atomically
from linker.demo.training import SplitStory, lee_stories, split_stories

DEV = 60  # queries of the dev set: few, because telling systems apart takes a large test set
ABOUT = ("b1", "b9", "b34")  # stories in articles.csv: the bushfires of Christmas 2001


def main() -> None:
    """Write the files to the folder named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder to write into")
    arguments = parser.parse_args()
    try:
        counts = write_files(arguments.folder)
    except IndexesError as e:
        sys.exit(f"error: {e}")
    for name, count in counts.items():
        print(f"{arguments.folder / name}: {count} rows")


def write_files(folder: Path) -> dict[str, int]:
    """Write the Lee news corpus (Lee et al., 2005) as spreadsheets and as a BEIR folder; return the row counts.

    Each story is split: its opening sentence is the post, the rest is the article. `posts.csv` has all posts,
    `articles.csv` three articles about bushfires; `beir/` has all articles as its corpus, all posts as its queries,
    and the links as judgements in three splits. Raises MissingExtraError without gensim, which contains the corpus.
    """
    background, test = lee_stories()
    stories = [*background, *test]
    train, dev, held_out = split_stories(seed=0)
    dev, held_out = dev[:DEV], [*dev[DEV:], *held_out]
    files = {
        "posts.csv": _csv(["post_id", "text"], ((f"p-{s.id}", s.opening) for s in stories)),
        "articles.csv": _csv(["id", "text"], ((f"a-{s.id}", s.rest) for s in stories if s.id in ABOUT)),
        "beir/corpus.jsonl": _jsonl((f"a-{s.id}", s.rest) for s in stories),
        "beir/queries.jsonl": _jsonl((f"p-{s.id}", s.opening) for s in stories),
        "beir/qrels/train.tsv": _qrels(train),
        "beir/qrels/dev.tsv": _qrels(dev),
        "beir/qrels/test.tsv": _qrels(held_out),
    }
    for name, lines in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, "".join(lines).encode())
    return {name: len(lines) - (not name.endswith(".jsonl")) for name, lines in files.items()}


def _csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_csv_line(row) for row in (header, *rows)]


def _csv_line(row: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(row)
    return buffer.getvalue()


def _jsonl(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [orjson.dumps({"_id": id_, "text": text}).decode() + "\n" for id_, text in rows]


def _qrels(stories: Sequence[SplitStory]) -> list[str]:
    return ["query-id\tcorpus-id\tscore\n", *(f"p-{s.id}\ta-{s.id}\t1\n" for s in stories)]


if __name__ == "__main__":
    main()
