"""`make demo`: the main task on a real corpus, end to end, in a few minutes and without a server.

Each story of the Lee news corpus is split into its opening sentence (the "post") and the rest (the "article").
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson

from indexes.dropping import drop
from indexes.hybrid import Mode
from indexes.interface import IndexesError
from indexes.store import manifest as manifests
from indexes.writer import Writer
from linker.building import BuildOptions, build
from linker.demo_training import Story, lee_stories, split_background, train_demo_encoder
from linker.encoders.loading import load_encoder
from linker.engine import Engine
from linker.errors import LinkerError
from linker.evaluation import evaluate, write_run
from linker.files import write_atomically
from linker.printable import guard_output
from linker.tuning import Tuning, tune

DEPTH = 100
MEASURES = ("recip_rank", "success_1", "success_5", "map")
NAMES = {"bm25": "BM25", "dense": "dense (star)", "hybrid": "hybrid, untuned"}

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
    """Train, index, tune on dev links, search both ways, evaluate, and print the results."""
    background, test = lee_stories()
    stories = [*background, *test]
    out.mkdir(parents=True, exist_ok=True)
    model = out / f"model-{seed}"
    if retrain or not (model / "model.safetensors").exists():
        _say(f"training a star encoder on {len(background)} stories: opening sentence ↔ rest (half a minute)")
        train_demo_encoder(model, seed)
    _say(f"indexing {len(stories)} articles and as many posts")
    articles = _index(out, "articles", {f"a-{s.id}": s.rest for s in stories}, model)
    posts = _index(out, "posts", {f"p-{s.id}": s.opening for s in stories}, model)
    _, dev = split_background(seed)
    _say(f"tuning on the links of the {len(dev)} stories that were not trained on, both ways")
    tuning = _tune([(articles, *_task(dev, "p", "a")), (posts, *_task(dev, "a", "p"))], seed)
    _say(f"searching with the {len(test)} stories the encoder has not seen\n")
    print(f"{'':28}{'MRR':>8}{'S@1':>8}{'S@5':>8}{'MAP':>8}")
    print(f"the article of a post ({len(test)} posts, {len(stories)} articles)")
    found = [_compare(out, "post2article", articles, tuning, *_task(test, "p", "a"))]
    print(f"the post of an article ({len(test)} articles, {len(stories)} posts)")
    found.append(_compare(out, "article2post", posts, tuning, *_task(test, "a", "p")))
    print(_why(tuning, found))
    _advise(out, len(test))


def _task(stories: Sequence[Story], source: str, target: str) -> tuple[dict[str, str], Judgements]:
    """Return the queries of stories, by id, and their links: from posts ("p") to articles ("a") or back."""
    queries = {f"{source}-{s.id}": s.opening if source == "p" else s.rest for s in stories}
    return queries, _links(stories, source, target)


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


def _tune(tasks: Sequence[tuple[Engine, Mapping[str, str], Judgements]], seed: int) -> Tuning:
    """Choose one way to search both indexes, as `linker index tune` does for one, and store it in both."""
    parts = []
    for engine, queries, links in tasks:
        texts, hybrid = list(queries.values()), engine.collection.hybrid
        assert hybrid.text is not None and hybrid.vectors is not None
        rankings = (
            hybrid.text.search_rows(texts, DEPTH),
            hybrid.vectors.search_rows(engine.encoder.encode(texts), DEPTH),
        )
        parts.append((*rankings, [engine.collection.rows.locate(list(links[q])).tolist() for q in queries]))
    bm25, dense = (
        (np.concatenate([part[side][0] for part in parts]), np.concatenate([part[side][1] for part in parts]))
        for side in (0, 1)
    )
    tuning = tune(bm25, dense, [rows for part in parts for rows in part[2]], seed=seed)
    fusion = tuning.chosen.fusion.to_json() if tuning.chosen.fusion else None
    for engine, _, _ in tasks:
        with Writer.open(engine.directory) as writer:
            writer.commit(search={**writer.manifest.search, "mode": tuning.chosen.mode, "fusion": fusion})
    return tuning


def _compare(
    out: Path, task: str, untuned: Engine, tuning: Tuning, queries: Mapping[str, str], links: Judgements
) -> dict[str, float]:
    """Write queries, qrels and a run per way to search; evaluate each run from its file, print it, return its MRR."""
    lines = (orjson.dumps({"id": i, "text": t}) + b"\n" for i, t in queries.items())
    write_atomically(out / f"{task}.queries.jsonl", b"".join(lines))
    qrels = out / f"{task}.qrels"
    judged = (f"{q} 0 {d} {r}\n" for q, documents in links.items() for d, r in documents.items())
    write_atomically(qrels, "".join(judged).encode())
    tuned = Engine(untuned.directory, encoder=untuned.encoder)
    ways: dict[str, tuple[Engine, Mode | None]] = {
        "bm25": (untuned, "bm25"), "dense": (untuned, "dense"), "hybrid": (untuned, "hybrid"), "tuned": (tuned, None),
    }  # fmt: skip
    found = {}
    for way, (engine, mode) in ways.items():
        start = time.perf_counter()
        answer = engine.search(list(queries.values()), DEPTH, mode=mode)
        milliseconds = 1000 * (time.perf_counter() - start) / len(queries)
        run_file = out / f"{task}.{way}.run"
        write_run(run_file, ((q, h.ids, h.scores) for q, h in zip(queries, answer.hits, strict=True)), way)
        result = evaluate(qrels, run_file, MEASURES)
        figures = "".join(f"{result[m]:8.3f}" for m in MEASURES)
        name = f"tuned: {tuning.chosen}" if way == "tuned" else NAMES[way]
        print(f"  {name:26}{figures}   {milliseconds:6.1f} ms per query")
        found[name] = result["recip_rank"]
    return found


def _why(tuning: Tuning, found: Sequence[Mapping[str, float]]) -> str:
    """Return one line on the last row: why dev chose it, and whether it is the best here, too."""
    behind = [(max(mrr.values()) - list(mrr.values())[-1], max(mrr, key=mrr.__getitem__)) for mrr in found]
    gap, best = max(behind)
    here = (
        "it is the best here, too" if gap <= 0 else f"here {best} is up to {gap:.3f} ahead, within the error"
    )
    if tuning.chosen == tuning.default:
        return f"Why the last row is the untuned hybrid: nothing was clearly ahead of it on {tuning.queries} dev links; {here}."
    return f"Why the last row: on {tuning.queries} dev links it leads the untuned hybrid by {tuning.lead} MRR; {here}."


def _advise(out: Path, queries: int) -> None:
    print(f"""
Written to {out}/: model-0 (the encoder), articles.index and posts.index, *.jsonl (texts), *.qrels, *.run.
With {queries} queries, each figure has a standard error of about .06. The encoder's word vectors are learned from the
articles that are indexed, never from the test posts or their links. What to try next:
  linker search {out}/articles.index --text "floods in Sydney"
  linker find {out}/posts.index --seeds {out}/article2post.queries.jsonl --until 5
  linker evaluate {out}/post2article.qrels {out}/post2article.tuned.run
  linker compare {out}/post2article.qrels {out}/post2article.bm25.run {out}/post2article.tuned.run
With your own data, a JSONL file with "id" and "text" on each line:
  linker index build news.jsonl --out news.index --encoder {out}/model-0
  linker index tune news.index --queries queries.jsonl --qrels qrels.txt
(the command is .venv/bin/linker, unless the environment is activated)""")


def _say(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
