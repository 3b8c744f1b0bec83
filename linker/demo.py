"""`make demo`: the main task on a real corpus, end to end, in a few minutes and without a server.

Each story of the Lee news corpus is split into its opening sentence (the "post") and the rest (the "article").
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from indexes.dropping import drop
from indexes.hybrid import MODES
from indexes.interface import IndexesError
from indexes.store import manifest as manifests
from linker.building import BuildOptions, build
from linker.demo_training import Story, lee_stories, train_demo_encoder
from linker.encoders.loading import load_encoder
from linker.engine import Engine
from linker.errors import LinkerError
from linker.evaluation import evaluate, write_run
from linker.files import write_atomically
from linker.printable import guard_output

MEASURES = ("recip_rank", "success_1", "success_5", "map")
NAMES = {"bm25": "BM25", "dense": "dense (star)", "hybrid": "hybrid"}

Judgements = Mapping[str, Mapping[str, int]]


def main() -> None:
    """Run the demo with its output in a folder; a second run reuses the trained model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for all output")
    parser.add_argument("--retrain", action="store_true", help="train the encoder again")
    parser.add_argument("--seed", type=int, default=0)
    guard_output()
    arguments = parser.parse_args()
    try:
        run(arguments.out, arguments.retrain, arguments.seed)
    except (LinkerError, IndexesError) as e:
        sys.exit(f"error: {e}")


def run(out: Path, retrain: bool = False, seed: int = 0) -> None:
    """Train, index, search both ways, evaluate, and print the results."""
    background, test = lee_stories()
    stories = [*background, *test]
    out.mkdir(parents=True, exist_ok=True)
    model = out / f"model-{seed}"
    if retrain or not (model / "model.safetensors").exists():
        _say(
            f"training a star encoder on {len(background)} stories: opening sentence ↔ rest (a minute or two)"
        )
        train_demo_encoder(model, seed)
    _say(f"indexing {len(stories)} articles and as many posts")
    articles = _index(out, "articles", {f"a-{s.id}": s.rest for s in stories}, model)
    posts = _index(out, "posts", {f"p-{s.id}": s.opening for s in stories}, model)
    _say(f"searching with the {len(test)} stories the encoder has not seen\n")
    print(f"{'':28}{'MRR':>8}{'S@1':>8}{'S@5':>8}{'MAP':>8}")
    print(f"the article of a post ({len(test)} posts, {len(stories)} articles)")
    _compare(out, "post2article", articles, {f"p-{s.id}": s.opening for s in test}, _links(test, "p", "a"))
    print(f"the post of an article ({len(test)} articles, {len(stories)} posts)")
    _compare(out, "article2post", posts, {f"a-{s.id}": s.rest for s in test}, _links(test, "a", "p"))
    _advise(out, len(test))


def _links(stories: Sequence[Story], source: str, target: str) -> Judgements:
    return {f"{source}-{s.id}": {f"{target}-{s.id}": 1} for s in stories}


def _index(out: Path, name: str, texts: Mapping[str, str], model: Path) -> Engine:
    """Write a corpus as JSONL and build its index from scratch, as `linker index build` does; return its engine."""
    corpus, folder = out / f"{name}.jsonl", out / f"{name}.index"
    write_atomically(corpus, b"".join(orjson.dumps({"id": i, "text": t}) + b"\n" for i, t in texts.items()))
    if (folder / manifests.NAME).exists():
        drop(folder)
    build([corpus], folder, BuildOptions(encoder=str(model)))
    return Engine(folder, encoder=load_encoder(model))


def _compare(out: Path, task: str, engine: Engine, queries: Mapping[str, str], links: Judgements) -> None:
    """Write queries, qrels and a run per mode; evaluate each run from its file and print it as a row."""
    lines = (orjson.dumps({"id": i, "text": t}) + b"\n" for i, t in queries.items())
    write_atomically(out / f"{task}.queries.jsonl", b"".join(lines))
    qrels = out / f"{task}.qrels"
    judged = (f"{q} 0 {d} {r}\n" for q, documents in links.items() for d, r in documents.items())
    write_atomically(qrels, "".join(judged).encode())
    for mode in sorted(MODES):
        start = time.perf_counter()
        answer = engine.search(list(queries.values()), 100, mode=mode)
        milliseconds = 1000 * (time.perf_counter() - start) / len(queries)
        run_file = out / f"{task}.{mode}.run"
        write_run(run_file, ((q, h.ids, h.scores) for q, h in zip(queries, answer.hits, strict=True)), mode)
        result = evaluate(qrels, run_file, MEASURES)
        figures = "".join(f"{result[m]:8.3f}" for m in MEASURES)
        print(f"  {NAMES[mode]:26}{figures}   {milliseconds:6.1f} ms per query")


def _advise(out: Path, queries: int) -> None:
    print(f"""
Written to {out}/: model-0 (the encoder), articles.index and posts.index, *.jsonl (texts), *.qrels, *.run.
With {queries} queries, each figure has a standard error of about .06. The encoder's word vectors are learned from the
articles that are indexed, never from the test posts or their links. What to try next:
  linker search {out}/articles.index --text "floods in Sydney"
  linker find {out}/posts.index --seeds {out}/article2post.queries.jsonl --until 5
  linker evaluate {out}/post2article.qrels {out}/post2article.hybrid.run
  linker compare {out}/post2article.qrels {out}/post2article.bm25.run {out}/post2article.hybrid.run
With your own data, a JSONL file with "id" and "text" on each line:
  linker index build news.jsonl --out news.index --encoder {out}/model-0
  linker index tune news.index --queries queries.jsonl --qrels qrels.txt
(the command is .venv/bin/linker, unless the environment is activated)""")


def _say(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
