"""How many posts per second can one process match against standing seeds, with P(link)?

`python -m benchmarks.watch` → benchmarks/results/watch.json. Seeds are the fact-checked claims of tweets2claims, all
or 1,000 of them, starting with the claims of the training tweets; P(link) is learned from the training tweets. The
posts are its tweets, each with three words in ten replaced by words of other tweets. A whole `watch` is measured:
JSON lines are read from a file, searched, filtered at P(link) ≥ 0.5 and written with their state.

`posts_per_cpu_s` is by CPU time of one process with one thread, the best of several runs. `firehose` is the same over
a pipe into which another process writes 6,000 posts per second, if the index can keep up: the wall-clock time from
writing a post to its match, which other load on the machine lengthens.
"""

import functools
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.support.common import cpu_time, percentiles, shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.hit_data import MeanVectors
from indexes.interface import Document
from indexes.store.records import EncoderRecord, Manifest
from indexes.text.parameters import AnalysisSettings
from indexes.writer import Writer
from linker.cli.commands.arguments import judgements_of
from linker.cli.commands.calibrating import calibrate
from linker.cli.commands.watching import Watched, watch
from linker.corpora import Query, read_corpus, read_queries
from linker.engine.engine import Engine
from linker.review.watching import PostMatch

POSTS, SEEDS, RUNS, SEED = 20_000, (1_000, 14_231), 3, 0
RATE, SECONDS, BURST = 6_000, 20, 60  # posts per second, seconds, posts per burst
CHANGED = 0.3  # share of a tweet's words
DATA = shared_data() / "tweets2claims"


@functools.cache
def tweets() -> list[Query]:
    return read_queries(DATA / "queries.jsonl.gz")


def posts(count: int) -> list[dict[str, str]]:
    """Return posts made from the tweets, with some of their words replaced."""
    rng = random.Random(SEED)
    texts = [query.text.split() for query in tweets()]
    pool = [word for text in texts for word in text]
    return [
        {
            "id": f"p{n}",
            "text": " ".join(
                rng.choice(pool) if rng.random() < CHANGED else word for word in rng.choice(texts)
            ),
        }
        for n in range(count)
    ]


def seeds(folder: Path, count: int, encoder: MeanVectors | None) -> Engine:
    """Build and calibrate an index of the seeds, and open it."""
    qrels = judgements_of(DATA / "qrels" / "train.tsv")
    wanted = {claim for claims in qrels.values() for claim in claims}
    claims = [d for d in read_corpus(DATA / "corpus.jsonl.gz") if isinstance(d, Document)]
    claims = sorted(claims, key=lambda claim: claim.id not in wanted)[:count]
    known = EncoderRecord("mean word vectors", encoder.fingerprint, encoder.dim) if encoder else None
    analysis = AnalysisSettings("english", "posts")
    out = folder / f"{count}-{'hybrid' if encoder else 'bm25'}"
    with Writer.create(out, Manifest("flat", encoder=known, analysis=analysis)) as writer:
        writer.add(claims, encoder.encode([d.full_text for d in claims]) if encoder else None)
        writer.commit()
    engine = Engine(out, encoder=encoder)
    ids = {claim.id for claim in claims}
    judged = {query.id: query.text for query in tweets() if ids & qrels.get(query.id, {}).keys()}
    calibrate(engine, judged, {id_: qrels[id_] for id_ in judged})
    return engine


def throughput(engine: Engine, source: Path, folder: Path) -> dict[str, Any]:
    """Return posts per CPU-second of a whole watch, and how many had a match."""
    reports = list[Watched]()

    def run() -> None:
        out = folder / f"matches-{len(reports)}.jsonl"
        reports.append(watch(engine, source, out=out))
        out.unlink()

    seconds = cpu_time(run, RUNS)
    return {
        "posts_per_cpu_s": round(reports[0].posts / seconds),
        "matched_share": round(reports[0].matched / reports[0].posts, 4),
    }


def pour(pipe: Path, lines: Sequence[str]) -> None:
    """Write lines into a pipe at this rate, each with its time of writing."""
    begin = time.time()
    with pipe.open("w", encoding="utf-8", buffering=1 << 16) as file:
        for start in range(0, len(lines), BURST):
            time.sleep(max(0.0, begin + start / RATE - time.time()))
            now = time.time()
            file.writelines(line % now for line in lines[start : start + BURST])
            file.flush()


def firehose(engine: Engine, folder: Path, made: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Return the delay of matches behind a pipe, and the rate at which posts were read from it."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    count = RATE * SECONDS
    lines = [
        json.dumps(made[n % len(made)]).replace("%", "%%")[:-1] + ', "sent": %.6f}\n' for n in range(count)
    ]
    late = list[float]()

    def each(match: PostMatch) -> None:
        late.append(time.time() - match.post.metadata["sent"])

    writer = multiprocessing.get_context("spawn").Process(target=pour, args=(pipe, lines))
    writer.start()
    wall, cpu = time.time(), time.process_time()
    report = watch(engine, pipe, each)
    wall, cpu = time.time() - wall, time.process_time() - cpu
    writer.join()
    pipe.unlink()
    return {
        "matched_per_s": round(report.posts / wall), "posts": report.posts,
        **percentiles(late, 1), "cpu_share": round(cpu / wall, 3),
        "load_1_min": round(os.getloadavg()[0], 1),
    }  # fmt: skip


@benchmark(seed=SEED, work=None)
def measured(options: Arguments) -> Results:
    rows, folder = [], options.work
    made, source = posts(POSTS), folder / "posts.jsonl"
    source.write_text("".join(json.dumps(post) + "\n" for post in made), encoding="utf-8")
    for name, encoder in (("BM25", None), ("hybrid, word vectors", MeanVectors())):
        for count in SEEDS:
            with seeds(folder, count, encoder) as engine:
                row = {"search": name, "seeds": count, **throughput(engine, source, folder)}
                if row["posts_per_cpu_s"] > RATE:
                    row["firehose"] = firehose(engine, folder, made)
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    return {"posts": POSTS, "changed": CHANGED, "offered_per_s": RATE, "rows": rows}
