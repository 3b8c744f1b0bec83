"""`make demo`: the main task on a real corpus, end to end, in a few minutes and without a server.

Each story of the Lee news corpus is split into its opening sentence (the "post") and the rest (the "article").
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson

from indexes.dropping import drop
from indexes.fusion import Ranking
from indexes.hybrid import MODES, Mode
from indexes.interface import IndexesError
from indexes.store import manifest as manifests
from indexes.writer import Writer
from linker.base.errors import LinkerError
from linker.base.files import write_atomically
from linker.base.printable import guard_output
from linker.demo.training import SplitStory, split_stories, train_demo_encoder
from linker.encoders.loading import load_encoder
from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.engine.tuning import Tuning, tune
from linker.evaluation import evaluate, write_run
from linker.review import Ledger, Seed
from linker.review.project import Workspace

MEASURES = ("recip_rank", "success_1", "success_5", "map")
NAMES = {"bm25": "BM25", "dense": "dense (star)", "hybrid": "hybrid, untuned"}


def main() -> None:
    """Run the demo and write its output to a folder; a second run reuses the trained model."""
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
    """Train, index, tune on dev links, search in both directions, evaluate, and print the results."""
    known, dev, test = split_stories(seed)
    stories = [*known, *dev, *test]
    out.mkdir(parents=True, exist_ok=True)
    model = out / f"model-{seed}"
    if retrain or not (model / "model.safetensors").exists():
        _say(f"training a star encoder on {len(known)} stories: opening sentence ↔ rest (half a minute)")
        train_demo_encoder(model, seed)
    _say(f"indexing {len(stories)} articles and as many posts")
    articles = _index(out, "articles", {f"a-{s.id}": s.rest for s in stories}, model)
    posts = _index(out, "posts", {f"p-{s.id}": s.opening for s in stories}, model)
    _say(f"tuning both on the links of {len(dev)} more stories; then searching with {len(test)} others\n")
    dev_tasks = [(articles, _task(dev, "p", "a")), (posts, _task(dev, "a", "p"))]
    tuning = _tune(dev_tasks, seed)
    print(f"{'':34}{'MRR':>8}{'S@1':>8}{'S@5':>8}{'MAP':>8}")
    print(f"the article of a post ({len(test)} posts, {len(stories)} articles)")
    there = _compare(out, "post2article", articles, tuning, _task(test, "p", "a"))
    print(f"the post of an article ({len(test)} articles, {len(stories)} posts)")
    back = _compare(out, "article2post", posts, tuning, _task(test, "a", "p"))
    print("both ways, the mean")
    both = {name: [(x + y) / 2 for x, y in zip(there[name], back[name], strict=True)] for name in there}
    for name, figures in both.items():
        print(f"  {name:32}{''.join(f'{value:8.3f}' for value in figures)}")
    print(_why(tuning, {name: figures[0] for name, figures in both.items()}))
    _review(out, test)
    _advise(out, len(test))


Task = tuple[dict[str, str], dict[str, dict[str, int]]]  # queries, by id, and their links


def _task(stories: Sequence[SplitStory], source: str, target: str) -> Task:
    """Return the task from posts ("p") to articles ("a"), or the reverse."""
    queries = {f"{source}-{s.id}": s.opening if source == "p" else s.rest for s in stories}
    return queries, {f"{source}-{s.id}": {f"{target}-{s.id}": 1} for s in stories}


def _index(out: Path, name: str, texts: Mapping[str, str], model: Path) -> Engine:
    """Write a corpus as JSONL and build its index from scratch, as `linker index build` does; return its engine."""
    corpus, folder = out / f"{name}.jsonl", out / f"{name}.index"
    write_atomically(corpus, b"".join(orjson.dumps({"id": i, "text": t}) + b"\n" for i, t in texts.items()))
    if (folder / manifests.NAME).exists():
        drop(folder)
    build([corpus], folder, BuildOptions(encoder=str(model)))
    return Engine(folder, encoder=load_encoder(model))


def _tune(tasks: Sequence[tuple[Engine, Task]], seed: int) -> Tuning:
    """Choose one search setting for both indexes, as `linker index tune` does for one, and store it in both.

    Together, the tasks have twice as many links as one; on the links of one, chance would decide.
    """
    bm25, dense, relevant = [], [], []
    for engine, (queries, links) in tasks:
        texts, index = list(queries.values()), engine.collection.hybrid
        assert index.text is not None
        assert index.vectors is not None
        bm25.append(index.text.search_rows(texts, 100))
        dense.append(index.vectors.search_rows(engine.encoder.encode(texts), 100))
        relevant += [engine.collection.rows.locate(list(links[query])).tolist() for query in queries]
    tuning = tune(_join(bm25), _join(dense), relevant, seed=seed)
    fusion = tuning.chosen.fusion.to_json() if tuning.chosen.fusion else None
    for engine, _ in tasks:
        with Writer.open(engine.directory) as writer:
            writer.commit(search={**writer.manifest.search, "mode": tuning.chosen.mode, "fusion": fusion})
    return tuning


def _join(rankings: Sequence[Ranking]) -> Ranking:
    return np.concatenate([rows for rows, _ in rankings]), np.concatenate([scores for _, scores in rankings])


def _compare(out: Path, task: str, untuned: Engine, tuning: Tuning, test: Task) -> dict[str, list[float]]:
    """Write queries, qrels and a run for each way to search; print and return the measures of each run."""
    queries, links = test
    lines = (orjson.dumps({"id": i, "text": t}) + b"\n" for i, t in queries.items())
    write_atomically(out / f"{task}.queries.jsonl", b"".join(lines))
    judged = (f"{q} 0 {d} {r}\n" for q, documents in links.items() for d, r in documents.items())
    write_atomically(out / f"{task}.qrels", "".join(judged).encode())
    ways: dict[str, tuple[str, Engine, Mode | None]] = {
        mode: (NAMES[mode], untuned, mode) for mode in sorted(MODES)
    }
    tuned = Engine(untuned.directory, encoder=untuned.encoder)
    ways["tuned"] = (f"tuned: {tuning.chosen}", tuned, None)
    rows = {}
    for way, (name, engine, mode) in ways.items():
        start = time.perf_counter()
        answer = engine.search(list(queries.values()), 100, mode=mode)
        milliseconds = 1000 * (time.perf_counter() - start) / len(queries)
        run_file = out / f"{task}.{way}.run"
        write_run(run_file, ((q, h.ids, h.scores) for q, h in zip(queries, answer.hits, strict=True)), way)
        result = evaluate(out / f"{task}.qrels", run_file, MEASURES)
        rows[name] = [result[m] for m in MEASURES]
        print(f"  {name:32}{''.join(f'{v:8.3f}' for v in rows[name])}   {milliseconds:6.1f} ms per query")
    return rows


def _why(tuning: Tuning, scores: Mapping[str, float]) -> str:
    """Return a line about the last row: why it was chosen on the dev links, and whether it is also the best here."""
    *others, last = scores
    best = max(others, key=scores.__getitem__)
    verdict = "and is the best here, too"
    if scores[last] < scores[best]:
        verdict = f"but here {best} is {scores[best] - scores[last]:.3f} ahead, which may be chance"
    if tuning.chosen == tuning.default:
        return f"Why the last row: nothing is clearly ahead of it on {tuning.queries} dev links, {verdict}."
    return f"Why the last row: it leads the untuned hybrid by {tuning.lead} on {tuning.queries} dev links, {verdict}."


def _review(out: Path, stories: Sequence[SplitStory]) -> None:
    """Store the articles of `stories` as seeds next to the index of posts, so that the review page is ready."""
    project = Workspace(out / "posts.index").projects[0]
    with Ledger(project.ledger) as ledger:
        ledger.put_seeds(Seed(f"a-{s.id}", s.rest) for s in stories)
        ledger.set("unit", "pairs")  # each article has a post of its own


def _advise(out: Path, queries: int) -> None:
    print(f"""
Written to {out}/: model-0 (the encoder), articles.index and posts.index, *.jsonl (texts), *.qrels, *.run.
With {queries} queries, each figure has a standard error of about .035. The encoder's word vectors are learned from the
articles that are indexed, never from the test posts or their links. What to try next:
  linker search {out}/articles.index --text "floods in Sydney"
  linker find {out}/posts.index --seeds {out}/article2post.queries.jsonl --until 5
  linker evaluate {out}/post2article.qrels {out}/post2article.tuned.run
  linker compare {out}/post2article.qrels {out}/post2article.bm25.run {out}/post2article.tuned.run
With your own data, in a JSONL file with "id" and "text" on each line:
  linker index build news.jsonl --out news.index --encoder {out}/model-0
  linker index tune news.index --queries queries.jsonl --qrels qrels.txt
To judge these stories in a browser, each article next to its most probable posts:
  linker serve {out}/posts.index
(the command is .venv/bin/linker, unless the environment is activated)""")


def _say(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
