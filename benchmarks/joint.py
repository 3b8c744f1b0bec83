"""What does deciding together gain in one language, and what does it cost?

`python -m benchmarks.joint --work FOLDER` → benchmarks/results/joint.json. Nothing is chosen on test. Each row has MRR
and S@1 of the texts of `test`, each decided alone (`--links many-to-one`) and all together, with the 95 % bootstrap
interval of the paired difference; other linking tools (benchmarks/support/rivals.py) are compared. `statements`: all
17,213 statements at once, by a ranker trained on the training links, with no link treated as known; `encoders`: the
same with vectors of an encoder that learned from a quarter of these links, and the ranker from the others
(benchmarks/rank.py); `known`: with the training links known, as a command; `cost`: what this takes with none. `tweets`:
with the training links known (many tweets share a claim), three seeds. `headlines` and `descriptions`: 800 texts and
their 800 documents, nothing known, one to one. `orphans`: P(link) if some texts have no document; `small-collections`:
among few documents. FOLDER is not deleted.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import absent, rank_data, rivals
from benchmarks.support.common import kept, shared_data
from benchmarks.support.harness import run_parts
from benchmarks.support.rank_data import Judged
from indexes.dtypes import Float64Array
from indexes.interface import Document
from linker.cli.commands.linking import link
from linker.crosslingual.sides import side_of
from linker.crosslingual.together import SETTINGS, candidate_lists, rank
from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.evaluation.reading.trec import read_run
from linker.evaluation.significance import bootstrap
from linker.scoring.probability.competition import Kind
from linker.scoring.probability.deciding import Choice, decide
from linker.scoring.ranking.candidates import deep_enough
from linker.scoring.ranking.folder import save

STATEMENTS, TWEETS = "statements2articles", "tweets2claims"
SEEDS = (0, 1, 2)
KEPT = 30
EQUAL = 800
CODE = """import resource
from linker.cli import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print("COST", used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def statements(work: Path) -> dict[str, Any]:
    """All statements, linked at once with a stored ranker and without known links."""
    links, stored = rank_data.links(STATEMENTS), work / "statements-ranked"
    every = _texts(work / "statements.jsonl", links.values())
    alone, joint = _at_once(stored, every, links["train"])
    (work / "alone.json").write_text(json.dumps(alone))
    scored = rivals.bm25(stored, rank_data.documents_of(every))
    matched = rivals.assigned(scored)
    return {
        split: _compared(alone, joint, links[split])
        | {
            "BM25": _row(_reciprocal(scored, links[split])),
            "BM25 + Hungarian": _row(_reciprocal(matched, links[split]), _reciprocal(alone, links[split])),
        }
        for split in ("dev", "test")
    }


def encoders(work: Path) -> dict[str, Any]:
    """As `statements`, with vectors of a bag that learned from links set aside, or of a star over the bag's vectors."""
    links = rank_data.links(STATEMENTS)
    every = _texts(work / "statements.jsonl", links.values())
    rows = {}
    for name, model in (("bag", rank_data.bag(work)), ("star", rank_data.star(work))):
        runs = _at_once(work / f"statements-ranked-{name}", every, rank_data.rest(links["train"]), str(model))
        rows[name] = {split: _compared(*runs, links[split]) for split in ("dev", "test")}
    return rows


def _at_once(
    directory: Path, texts: Path, train: Judged, encoder: str = "none"
) -> tuple[rivals.Run, rivals.Run]:
    """Return the runs of texts, each alone and all together, by a ranker trained on `train`; the index is kept."""
    rank_data.make_index(STATEMENTS, directory, encoder)
    engine = Engine(directory)
    if engine.ranker is None:
        documents = [next(iter(train.qrels[q.id])) for q in train.queries]
        pairs = np.stack([np.arange(len(documents)), engine.collection.rows.locate(documents)], axis=1)
        settings = deep_enough(engine.collection.ranking(), [q.text for q in train.queries], pairs, SETTINGS)
        trained = engine.train_ranker(train.queries, train.qrels, settings)
        with tempfile.TemporaryDirectory() as folder:
            save(trained.ranker, trained.text, Path(folder) / "ranker")
            engine.store_ranker(Path(folder) / "ranker")
    (alone, _), (joint, _) = _decided(Engine(directory), texts, (), ("none", "one-to-one"), SEEDS[0])
    return alone, joint


def _compared(alone: rivals.Run, joint: rivals.Run, judged: Judged) -> dict[str, Any]:
    before = _reciprocal(alone, judged)
    return {"alone": _row(before), "together": _row(_reciprocal(joint, judged), before)}


def known(work: Path) -> dict[str, Any]:
    """Decide dev and test statements with the training links known, and each alone with the ranker of `statements`."""
    links, alone = rank_data.links(STATEMENTS), json.loads((work / "alone.json").read_text())
    every = _texts(work / "statements.jsonl", links.values())
    cost = _in_a_process(every, work / "known.run", shared_data() / STATEMENTS / "qrels" / "train.tsv")
    run, about = read_run(work / "known.run"), json.loads((work / "known.run.json").read_text())
    rows = {
        split: _row(_reciprocal(run, links[split]), _reciprocal(alone, links[split]))
        for split in ("dev", "test")
    }
    settings = {name: about[name] for name in ("competition", "capacity", "competition_leads")}
    return {**rows, "competition": settings, "cost": cost}


def cost(work: Path) -> dict[str, float]:
    """Link all statements to their 19,125 articles with no link known, as a command that also builds the index."""
    every = _texts(work / "statements.jsonl", rank_data.links(STATEMENTS).values())
    return _in_a_process(every, work / "cost.run")


def _decided(
    engine: Engine, texts: Path, known: Sequence[tuple[str, str]], kinds: Iterable[Kind | None], seed: int
) -> list[tuple[rivals.Run, Choice]]:
    """Return the runs of several kinds of competition (None: the links choose) over the same candidates."""
    side, linked = side_of(texts, None, None), {one for one, _ in known}
    ids, unlinked = engine.collection.rows.ids, [id_ for id_ in side.documents if id_ not in linked]
    lists, taught, _ = candidate_lists(engine, side, unlinked, known, seed)
    found = []
    for kind in kinds:
        decision = decide(lists, taught, kind, seed)
        best = rank(lists, decision, unlinked, ids)
        rows = zip(unlinked, best.targets.tolist(), best.scores.tolist(), strict=True)
        run = {
            id_: {ids[row]: score for row, score in zip(of, scores, strict=True) if row >= 0}
            for id_, of, scores in rows
        }
        found.append((run, decision.choice))
    return found


def _in_a_process(texts: Path, out: Path, *train: Path) -> dict[str, float]:
    """Link statements as a command; return its CPU minutes and GiB, including the index."""
    documents, known = shared_data() / STATEMENTS / "corpus.jsonl.gz", [f"--train={path}" for path in train]
    command = [sys.executable, "-c", CODE, "link", str(texts), str(documents), *known, "-k", str(KEPT),
               "--out", str(out)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, kib = done.stdout.rpartition("COST ")[2].split()
    return {"cpu_minutes": round(float(seconds) / 60, 2), "gib": round(int(kib) / 2**20, 2)}


def tweets(work: Path) -> dict[str, Any]:
    """Link tweets, which share claims, each alone and all together, with the capacity learned from the links."""
    links, directory = rank_data.links(TWEETS), work / TWEETS
    rank_data.make_index(TWEETS, directory)
    every = _texts(work / "tweets.jsonl", (links["train"], links["test"]))
    rows: dict[str, Any] = {}
    known = [
        (one, other) for one, of in links["train"].qrels.items() for other, grade in of.items() if grade > 0
    ]
    for seed in SEEDS:
        (alone, _), (joint, choice) = _decided(Engine(directory), every, known, ("none", None), seed)
        before = _reciprocal(alone, links["test"])
        rows[str(seed)] = {
            "alone": _row(before),
            "together": _row(_reciprocal(joint, links["test"]), before),
            "competition": {
                "competition": choice.kind,
                "capacity": dataclasses.asdict(choice.capacity),
                "competition_leads": choice.leads,
            },
        }
    queries = [Document(q.id, q.text) for q in links["test"].queries]
    documents = rank_data.documents_of(shared_data() / TWEETS / "corpus.jsonl.gz")
    runs = {
        "BM25 + Hungarian": rivals.assigned(rivals.bm25(directory, queries)),
        # no MiniLM, which needs half an hour for 14,231 claims
        **_rivals(directory, queries, documents, ("RapidFuzz",)),
    }
    return {**rows, **{name: _row(_reciprocal(run, links["test"]), before) for name, run in runs.items()}}


def headlines(work: Path) -> dict[str, Any]:
    """Link headlines to their articles, one to one, with no links known."""
    news = rank_data.documents_of(shared_data() / "bbc-news" / "corpus.jsonl.gz")
    return _equal(work, "headlines", [(d.title, Document(d.id, d.text)) for d in news if d.title])


def descriptions(work: Path) -> dict[str, Any]:
    """Link descriptions to their pages, one to one, with no links known."""
    judged = rank_data.links("descriptions")["test"]
    pages = {
        d.id: d for d in rank_data.documents_of(shared_data() / "linked-pages" / "masked" / "en.jsonl.gz")
    }
    described = [(q.text, pages[next(iter(judged.qrels[q.id]))]) for q in judged.queries]
    return _equal(work, "descriptions", list({page.id: (text, page) for text, page in described}.values()))


def orphans(work: Path) -> dict[str, Any]:
    """P(link) if 0, 50 and 90 % of the test claims are absent, with no links known, by seed."""
    return {str(seed): absent.linked(work, TWEETS, seed, taught=False) for seed in SEEDS}


def orphans_taught(work: Path) -> dict[str, Any]:
    """As `orphans`, but with 999 links known: each seed trains four rankers."""
    return {str(seed): absent.linked(work, TWEETS, seed, taught=True) for seed in SEEDS}


def few_texts(work: Path) -> dict[str, Any]:
    """As `orphans`, but for a few tweets at a time, with one seed."""
    return absent.batches(work, TWEETS, SEEDS[0])


def small_collections(work: Path) -> dict[str, Any]:
    """P(link) in small collections of four sets, with one seed."""
    return absent.few_documents(work, SEEDS[0])


def orphans_statements(work: Path) -> dict[str, Any]:
    """As `orphans`, but for the test statements."""
    return {str(seed): absent.linked(work, STATEMENTS, seed, taught=False) for seed in SEEDS}


def orphans_statements_taught(work: Path) -> dict[str, Any]:
    """As `orphans_statements`, but with 1,000 links known, for one seed."""
    return {str(seed): absent.linked(work, STATEMENTS, seed, taught=True) for seed in SEEDS[:1]}


def _equal(work: Path, name: str, pairs: Sequence[tuple[str, Document]]) -> dict[str, Any]:
    sample = np.random.default_rng(0).permutation(len(pairs))[:EQUAL]
    some = [pairs[i] for i in sample.tolist()]
    queries, documents = work / f"{name}-texts.jsonl", work / f"{name}-documents.jsonl"
    _write(queries, ({"id": f"q{i}", "text": text} for i, (text, _) in enumerate(some)))
    _write(documents, ({"id": d.id, "text": d.full_text} for _, d in sorted(some, key=lambda p: p[1].id)))
    gold = {f"q{i}": {document.id: 1.0} for i, (_, document) in enumerate(some)}
    directory, minilm = (
        _index(work / f"{name}-{encoder}", documents, encoder) for encoder in ("none", "minilm")
    )
    alone = link(queries, directory, k=KEPT, links="many-to-one").run
    before = _by_gold(alone, gold)
    texts, listed = rank_data.documents_of(queries), rank_data.documents_of(documents)
    runs = {
        "together": link(queries, directory, k=KEPT, links="one-to-one").run,
        "together, MiniLM": link(queries, minilm, k=KEPT, links="one-to-one").run,
        "BM25 + Hungarian": rivals.assigned(rivals.bm25(directory, texts)),
        **_rivals(work / name, texts, listed, rivals.RIVALS),
    }
    return {
        "alone": _row(before),
        **{title: _row(_by_gold(run, gold), before) for title, run in runs.items()},
    }


def _index(directory: Path, documents: Path, encoder: str) -> Path:
    """Return the index of documents, which is built if missing."""
    if not (directory / "manifest.json").exists():
        with tempfile.TemporaryDirectory(dir=directory.parent) as folder:
            build([documents], Path(folder) / "index", BuildOptions(encoder=encoder, positions=True))
            (Path(folder) / "index").rename(directory)
    return directory


def _rivals(
    base: Path, texts: Sequence[Document], documents: Sequence[Document], names: Iterable[str]
) -> dict[str, rivals.Run]:
    """Return the runs of the rivals that are installed, alone and assigned one to one; files `base`-NAME keep them."""
    runs: dict[str, rivals.Run] = {}
    for name in names:
        rival = functools.partial(rivals.RIVALS[name], texts, documents)
        try:
            scored = kept(base.with_name(f"{base.name}-{name}.json"), rival)
        except ImportError as e:
            print(f"{name} is left out: {e}", file=sys.stderr)
            continue
        runs |= {name: scored, f"{name} + Hungarian": rivals.assigned(scored)}
    return runs


def _texts(path: Path, parts: Iterable[Judged]) -> Path:
    _write(path, ({"id": q.id, "text": q.text} for part in parts for q in part.queries))
    return path


def _write(path: Path, records: Iterable[Mapping[str, str]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _reciprocal(run: Mapping[str, Mapping[str, float]], judged: Judged) -> Float64Array:
    return _by_gold(run, {q.id: judged.qrels[q.id] for q in judged.queries})


def _by_gold(run: Mapping[str, Mapping[str, float]], gold: Mapping[str, Mapping[str, float]]) -> Float64Array:
    """Return the reciprocal ranks [n] of the first right document among KEPT."""
    found = []
    for id_, right in gold.items():
        order = sorted(run.get(id_, {}).items(), key=lambda entry: -entry[1])
        found.append(next((1 / r for r, (name, _) in enumerate(order, 1) if right.get(name, 0) > 0), 0.0))
    return np.array(found)


def _row(found: Float64Array, before: Float64Array | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"mrr": round(float(found.mean()), 4), "s1": round(float((found == 1).mean()), 4)}
    if before is None:
        return row
    low, high = bootstrap(found - before)
    return row | {"lead": [round(float((found - before).mean()), 4), round(low, 4), round(high, 4)]}


if __name__ == "__main__":
    parts = (
        tweets,
        headlines,
        descriptions,
        orphans,
        orphans_taught,
        few_texts,
        small_collections,
        orphans_statements,
        orphans_statements_taught,
        statements,
        encoders,
        known,
        cost,
    )
    run_parts({part.__name__.replace("_", "-"): part for part in parts}, seed=SEEDS[0])
