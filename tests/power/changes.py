"""Changes that a power cut may interrupt: the state before, the action, and the state a user finds afterwards."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import xxhash

from indexes import carrying, merging, stored_vectors
from indexes.collection import Collection
from indexes.dropping import drop
from indexes.store import backup as backups
from indexes.store import files as storage
from indexes.store import generations
from indexes.store import manifest as manifests
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from linker.base.files import write_atomically
from linker.engine import building
from linker.evaluation.reading.trec import write_run
from linker.review.interface import Judgement
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from linker.review.uploads import store, stored
from tests.faults.support import assert_tidy, content
from tests.helpers import WORDS, HashEncoder, tiny_bert, write_corpus

if TYPE_CHECKING:
    from linker.encoders.text import TextEncoder
    from linker.papers.news.similarity import NewsSimilarity
    from linker.scoring.pairs.sts.cross_encoder import CrossEncoder

OPTIONS = building.BuildOptions(encoder="hash", vectors="hnsw", batch_size=8, commit_every=24)
JUDGEMENTS = [
    Judgement("seed", f"d{n}", "relevant" if n % 2 else "not", time=f"2026-01-0{n + 1}T00:00:00+00:00")
    for n in range(4)
]
Step = Callable[[Path], None]


@dataclass(frozen=True)
class Change:
    """One change to the content of a folder.

    `make` may be told to repeat an interrupted change; then it ends as if nothing had happened. `read` returns
    everything that a user finds, equal for equal states, and None before anything exists; it raises if something is
    broken. `commits` are the names by which an entry of a folder may commit. `tidy` raises for leftovers after
    `make`.
    """

    prepare: Step
    make: Step
    read: Callable[[Path], object]
    commits: frozenset[str] = frozenset()
    tidy: Step = lambda _: None


def acknowledged() -> None:
    """Called when the user is told that everything so far is done; the recorder replaces it."""


def _small(step: Step) -> Step:
    """Make a step on small indexes, whose graphs start at 20 rows, with an encoder that needs no model."""

    @functools.wraps(step)
    def run(box: Path) -> None:
        graphs = functools.partial(FaissIndex, exact_below=20)
        with (
            mock.patch.object(building, "load_encoder", lambda _name, **_: HashEncoder()),
            mock.patch.object(stored_vectors, "FaissIndex", graphs),
        ):
            step(box)

    return run


def _given(box: Path, name: str, count: int, **options: Any) -> Path:
    """Return a corpus next to the watched folder, with two unusable records."""
    path = box.parent / f"{name}.jsonl"
    if not path.exists():
        write_corpus(path, count, **options)
        with path.open("a", encoding="utf-8") as file:
            file.write('not json\n{"id": "d3", "text": "another text for it"}\n')
    return path


def _build(box: Path, out: str = "above/it/index") -> None:
    building.build([_given(box, "corpus", 50)], box / out, OPTIONS, resume=True)


def _base(box: Path) -> None:
    _build(box, "index")
    _delete(box, "d1", "d2")


def _add(box: Path) -> None:
    more = _given(box, "more", 30, seed=1, prefix="m")
    building.add([more], box / "index", HashEncoder(), OPTIONS, replace=True)


def _delete(box: Path, *ids: str) -> None:
    with Writer.open(box / "index") as writer:
        writer.remove(ids or ["d5", "d6", "d49"])
        writer.commit()


def _compact(box: Path) -> None:
    with Writer.open(box / "index") as writer:
        writer.compact()


def _drop(box: Path) -> None:
    if (box / "index" / manifests.NAME).exists():
        drop(box / "index")


def _base_that_keeps(box: Path) -> None:
    _build(box, "index")
    for ids in (["d1"], ["d2", "d3"], ["d4"]):
        with Writer.open(box / "index", keep=2) as writer:
            writer.remove(ids)
            writer.commit()


def _several(box: Path) -> None:
    tiny = carrying.MergeLimits(1, 1, 1 << 40)
    with mock.patch.multiple(carrying, ROWS=tiny, POSTINGS=tiny):
        _base(box)
        _add(box)


def _merge(box: Path) -> None:
    tiny, opened = carrying.MergeLimits(1, 1, 1 << 40), [Collection.open(box / "index")]
    with mock.patch.multiple(carrying, ROWS=tiny, POSTINGS=tiny, SETTLED=1):
        merging.merge(lambda: opened[-1], lambda commit: opened.extend(filter(None, [commit()])))


def _check_out(box: Path) -> None:
    last = manifests.load(box / "index")
    generations.checkout(box / "index", max(generations.kept(box / "index", last)))


def _back_up(box: Path) -> None:
    backups.backup(box / "index", box / "above" / "copy")


def _archive(box: Path) -> None:
    backups.backup(box / "index", box / "copy.tar")


def _restore(box: Path) -> None:
    backups.restore(box / "copy.tar", box / "above" / "copy")


def _base_and_archive(box: Path) -> None:
    _base(box)
    _archive(box)


def _read_archive(box: Path) -> object:
    return _hash((box / "copy.tar").read_bytes()) if (box / "copy.tar").exists() else None


def _read_index(name: str, dim: int, box: Path) -> object:
    if not (box / name / manifests.NAME).exists():
        return None
    found = _hash(content(box / name, queries=2, dim=dim))
    kept = generations.with_kept(box / name)
    if lines := storage.damage(box / name, kept):
        raise AssertionError(f"a generation that is kept is damaged: {lines}")
    return found


def _hash(value: object) -> str:
    return xxhash.xxh3_128_hexdigest(repr(value).encode())


def _reader(name: str, dim: int = 16) -> Callable[[Path], object]:
    return functools.partial(_read_index, name, dim)


def _index(make: Step, prepare: Step = _base, name: str = "index", dim: int = 16) -> Change:
    return Change(
        _small(prepare), _small(make), _reader(name, dim), frozenset([manifests.NAME]),
        lambda box: assert_tidy(box / name),
    )  # fmt: skip


def _nothing(_: Path) -> None:
    """Start from an empty folder."""


INDEXES = {
    "build": _index(_build, _nothing, "above/it/index"),
    "add": _index(_add),
    "delete": _index(_delete),
    "compact": _index(_compact),
    "merge": _index(_merge, _several),
    "drop": Change(_small(_base), _drop, _reader("index"), frozenset([manifests.NAME])),
    "add, keeping generations": Change(
        _small(_base_that_keeps), _small(_add), _reader("index"), frozenset([manifests.NAME])
    ),
    "check out": Change(_small(_base_that_keeps), _check_out, _reader("index"), frozenset([manifests.NAME])),
    "back up": Change(_small(_base), _back_up, _reader("above/copy"), frozenset(["copy"])),
    "back up to an archive": Change(_small(_base), _archive, _read_archive, frozenset(["copy.tar"])),
    "restore": Change(_small(_base_and_archive), _restore, _reader("above/copy"), frozenset(["copy"])),
}


def _read_folder(load: Callable[[Path], object], box: Path) -> object:
    """Return the files of a model, which must be complete enough to load.

    Between two renames, an earlier model is set aside under the name given in the loading error.
    """
    folder, aside = box / "models" / "m", box / "models" / ".m.linker-old"
    folder = folder if folder.exists() or not aside.exists() else aside
    if not folder.exists():
        return None
    load(folder)
    files = sorted(p for p in folder.rglob("[!.]*") if p.is_file())
    return _hash([(p.relative_to(folder).as_posix(), p.read_bytes()) for p in files])


def _model(save: Callable[[int, Path], None], load: Callable[[Path], object], *, again: bool) -> Change:
    """Return a change that saves a model, different for each seed, in a new folder or over an earlier model."""

    def make(box: Path) -> None:
        save(1, box / "models" / "m")

    def prepare(box: Path) -> None:
        save(0, box / "models" / "m")

    commits = frozenset(["m", "model.safetensors"])
    return Change(prepare if again else _nothing, make, functools.partial(_read_folder, load), commits)


@functools.cache
def _encoder(seed: int) -> TextEncoder:
    import torch

    from linker.encoders.configs import BagConfig
    from linker.encoders.text import TextEncoder
    from linker.encoders.tokens import Vocabulary, WordTokenizer

    torch.manual_seed(seed)
    tokens = Vocabulary.of("abcdefg" if seed else "abcdxyz")
    return TextEncoder.new(BagConfig(8 + seed), WordTokenizer(tokens), max_length=20)


def _save_encoder(seed: int, folder: Path) -> None:
    from linker.encoders.folder import save

    save(_encoder(seed), folder)


def _save_weights(seed: int, folder: Path) -> None:
    """Continue training a saved model."""
    import torch

    from linker.encoders.folder import save, save_weights

    encoder = _encoder(0)
    with torch.no_grad():
        for parameter in encoder.module.parameters():
            parameter.fill_(seed + 1)
    if seed:
        save_weights(encoder, folder)
    else:
        save(encoder, folder)


def _load_encoder(folder: Path) -> object:
    from linker.encoders.folder import load

    return load(folder)


@functools.cache
def _scorer(box: Path, seed: int) -> CrossEncoder:
    import torch

    from linker.scoring.pairs.backbone import load_backbone
    from linker.scoring.pairs.sts.cross_config import CrossConfig
    from linker.scoring.pairs.sts.cross_encoder import CrossEncoder

    torch.manual_seed(seed)
    tiny = box / "tiny"
    if not tiny.exists():
        tiny_bert(tiny, WORDS)
    return CrossEncoder.new(CrossConfig(hidden=4), load_backbone(tiny))


def _save_scorer(seed: int, folder: Path) -> None:
    from linker.scoring.pairs.sts.scorer_folder import save

    save(_scorer(folder.parents[2], seed), folder)


def _load_scorer(folder: Path) -> object:
    from linker.scoring.pairs.sts.scorer_folder import load

    return load(folder)


@functools.cache
def _similarity(box: Path) -> NewsSimilarity:
    import dataclasses

    from linker.papers.news.recognise import Recogniser
    from linker.papers.news.siamese import TunedSiamese
    from linker.papers.news.similarity import train
    from linker.papers.news.similarity_config import SimilarityConfig
    from tests.papers.pairs.news.news_data import news

    config = SimilarityConfig(features=("encoder",), folds=0)
    model = train(news(12), config, encoder=HashEncoder(8), recogniser=Recogniser({}))
    tuned = dataclasses.replace(config.siamese, frozen=False, backbone="tiny", max_length=32)
    siamese = TunedSiamese(_scorer(box, 0).backbone, 32)
    return dataclasses.replace(model, config=dataclasses.replace(config, siamese=tuned), siamese=siamese)


def _save_similarity(_seed: int, folder: Path) -> None:
    from linker.papers.news.similarity_folder import save

    if not folder.exists():  # an existing folder is never replaced
        save(_similarity(folder.parents[2]), folder)


def _load_similarity(folder: Path) -> object:
    from linker.papers.news.recognise import Recogniser
    from linker.papers.news.similarity_folder import load

    return load(folder, recogniser=Recogniser({}))


MODELS = {
    "save an encoder": _model(_save_encoder, _load_encoder, again=False),
    "replace an encoder": _model(_save_encoder, _load_encoder, again=True),
    "replace an encoder's weights": _model(_save_weights, _load_encoder, again=True),
    "save a pair scorer": _model(_save_scorer, _load_scorer, again=False),
    "replace a pair scorer": _model(_save_scorer, _load_scorer, again=True),
    "save a similarity model": _model(_save_similarity, _load_similarity, again=False),
}


def _write_files(box: Path) -> None:
    for name in ("old.json", "new.json"):
        write_atomically(box / name, json.dumps({"a": list(range(3000))}).encode())
        acknowledged()


def _read_files(box: Path) -> object:
    found = {p.name: p.read_bytes() for p in box.glob("[!.]*")}
    return sorted((name, _hash(data)) for name, data in found.items())


def _write_run(box: Path) -> None:
    ids, scores = [f"d{n}" for n in range(200)], [1 - n / 200 for n in range(200)]
    write_run(box / "run.trec.gz", [(f"q{n}", ids, scores) for n in range(3)])


def _judge(box: Path) -> None:
    with Ledger(box / "ledger.sqlite") as ledger:
        for judgement in JUDGEMENTS[len(ledger.judgements()) :]:
            ledger.add(judgement)
            acknowledged()


def _read_ledger(box: Path) -> object:
    copy = box.with_name("copy")  # opening it repairs it
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for path in box.glob("ledger.sqlite*"):
        if not path.name.endswith("-shm"):  # does not survive a crash: it is shared memory
            shutil.copyfile(path, copy / path.name)
    if not (copy / "ledger.sqlite").exists():
        return ()
    with Ledger(copy / "ledger.sqlite") as ledger:
        return tuple(judgement.id for judgement in ledger.judgements())


def _make_review(box: Path) -> None:
    workspace = Workspace(box / "above" / "reviews")
    if not workspace.projects:
        workspace.create("Floods")
    acknowledged()
    (project,) = workspace.projects
    if not stored(project):
        store(project, "posts.csv", BytesIO(b"id,text\n1,a\n"))
    acknowledged()


def _read_reviews(box: Path) -> object:
    if not (box / "above" / "reviews").exists():
        return ()
    found = [(p.name, p.problem, p.about["name"], p) for p in Workspace(box / "above" / "reviews").projects]
    return tuple((*words, [(f.name, f.read_bytes()) for f in stored(p)]) for *words, p in found)


FILES = {
    "make a review": Change(_nothing, _make_review, _read_reviews, frozenset(["floods", "posts.csv"])),
    "write files atomically": Change(
        lambda box: write_atomically(box / "old.json", b"{}"), _write_files, _read_files,
        frozenset(["old.json", "new.json"]),
    ),
    "write a run": Change(
        lambda box: write_atomically(box / "run.trec.gz", b"{}"), _write_run, _read_files,
        frozenset(["run.trec.gz"]),
    ),
    "judge": Change(_nothing, _judge, _read_ledger),
}  # fmt: skip
CHANGES = INDEXES | MODELS | FILES
