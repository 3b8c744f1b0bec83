"""What does the store survive, and how much memory does it take?

`python -m benchmarks.faults [--parts PART,…] [--work FOLDER]` → benchmarks/results/faults.json. The parts:

- memory: a million documents with 256-dimensional vectors are indexed within 2.5 GiB and searched within 1.5 GiB
  (resident, pages of any kind; see benchmarks/support/store_memory.py).
- kills: a small index is killed at every fault point of every change and at random moments; the committed state must
  be the one before or after, and repeating the change must end as if undisturbed.
- power: the same holds for every state that a power cut may leave of each change (tests/power/disk.py describes the
  disk).
- corruptions: bytes of an index are altered, and its files are truncated or extended; the error on opening must name
the file.
- hostile: index and model folders with valid checksums, as an attacker would make them, must be refused or return
  results of the right shape, and never kill the process.
- fuzz: mutated inputs to every reader of foreign files must be accepted or refused, without a traceback.
"""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.support.common import recorded
from benchmarks.support.harness import Arguments, Commas, Results, benchmark
from benchmarks.support.store_memory import LENGTH, SEED, WORDS, measure_memory
from indexes.collection import Collection
from indexes.interface import DamagedError
from indexes.store import manifest as manifests
from tests.faults.support import Worker, content
from tests.fuzz import process as fuzzing
from tests.golden.make_index import HERE
from tests.helpers import write_corpus as write_documents
from tests.power.changes import CHANGES
from tests.power.checking import check
from tests.power.recording import record as record_calls

GOLDEN = HERE / "index-v3"
PARTS = ("memory", "kills", "power", "corruptions", "hostile", "fuzz")
# parts of which a run may measure only some kinds or changes; it keeps the recorded results of the others
GROWING = ("memory", "power")


def measure_kills(work: Path, at_random: int) -> dict[str, dict[str, int]]:
    """Kill each change at every fault point and at random; count the end states that were neither all nor nothing."""
    rng, results = random.Random(SEED), {}
    given = {
        "build": [write_documents(work / "c.jsonl", 400)],
        "add": [write_documents(work / "m.jsonl", 150, seed=1, prefix="m")],
        "delete": [work / "ids"],
        "compact": [],
    }
    (work / "ids").write_text("d5 d6 d7 d300", encoding="utf-8")
    (work / "first").write_text("d1 d2", encoding="utf-8")
    with Worker() as worker:
        worker.make("build", *given["build"], work / "base")
        worker.make("delete", work / "first", work / "base")
        for change, paths in given.items():
            begin = None if change == "build" else work / "base"
            trial = Trial(worker, change, paths, begin, work / "out")
            deaths: list[dict[str, Any]] = [
                {"fault": f"{point}:{times}"} for point, times in trial.passed.items()
            ]
            moments = [{"after": rng.uniform(0, trial.seconds)} for _ in range(at_random)]
            results[change] = {
                "fault_points": len(deaths),
                "random_moments": len(moments),
                **Counter(trial.outcome(**death) for death in [*deaths, *moments]),
            }
            print(change, results[change], flush=True)
    return results


class Trial:
    """One change that is killed again and again, with the states before and after it."""

    def __init__(
        self, worker: Worker, change: str, paths: Sequence[Path], begin: Path | None, out: Path
    ) -> None:
        self._worker, self._change, self._paths, self._begin, self._out = worker, change, paths, begin, out
        self._before = self._reset()
        start = time.perf_counter()
        self.passed = worker.make(change, *paths, out)
        self.seconds = time.perf_counter() - start
        self._after = content(out)

    def _reset(self) -> object:
        shutil.rmtree(self._out, ignore_errors=True)
        if self._begin is None:
            return None
        shutil.copytree(self._begin, self._out)
        return content(self._out)

    def outcome(self, **death: Any) -> str:
        """Kill the change, inspect the state and repeat the change; return the outcome."""
        self._reset()
        answer = self._worker.ask(self._change, *self._paths, self._out, **death)
        committed = content(self._out) if (self._out / manifests.NAME).exists() else None
        whole = committed in (self._before, self._after) or self._change == "build"
        if committed != self._after:
            self._worker.make(self._change, *self._paths, self._out)
        if not whole or content(self._out) != self._after:
            return "wrong"
        return "killed_and_right" if answer["status"] else "ended_before_the_kill"


def measure_power(work: Path, changes: Sequence[str], states: int, again: int) -> dict[str, dict[str, int]]:
    """Open the states that a power cut may leave of changes, and repeat each change on a sample of them."""
    results = {}
    for job, history in record_calls(changes, work).items():
        verdict = check(job, history, work, states, again)
        results[job] = {
            "calls": len(history.ops),
            "states": verdict.states,
            "made_again": verdict.made_again,
            "wrong": len(verdict.wrong),
        }
        print(job, results[job], *verdict.wrong[:3], flush=True)
    return results


def measure_corruptions(work: Path, count: int) -> dict[str, int]:
    """Alter, truncate or extend one index file, `count` times; count the opens that were not refused by name."""
    rng, index, results = random.Random(SEED), work / "corrupted", Counter[str]()
    shutil.copytree(GOLDEN, index)
    paths = [path for path in sorted(index.rglob("*")) if path.is_file() and path.stat().st_size]
    for number in range(count):
        path = paths[number % len(paths)]
        sound = path.read_bytes()
        altered = bytearray(sound)
        place = rng.randrange(len(sound))
        kind = rng.choice(["flip", "cut", "extend"])
        if kind == "flip":
            altered[place] ^= 1 << rng.randrange(8)
        else:
            altered[place:] = sound[place:] + rng.randbytes(9) if kind == "extend" else b""
        path.write_bytes(altered)
        try:
            Collection.open(index)
            results["not noticed"] += 1
        except DamagedError as error:
            results["refused" if path.name in str(error) else "refused, the file not named"] += 1
        path.write_bytes(sound)
    Collection.open(index)
    return dict(results)


def measure_hostile(work: Path, budget: int) -> dict[str, dict[str, int]]:
    """Load model folders that an attacker made; count the outcomes."""
    from linker.encoders import folder as folders
    from linker.encoders.configs import KINDS, StarConfig
    from linker.encoders.text import TextEncoder
    from linker.encoders.tokens import Vocabulary, WordTokenizer
    from tests.encoders.hostile_models import attack

    results = {}
    tokenizer = WordTokenizer(Vocabulary.of(["rain", "sun"]))
    for kind, config in KINDS.items():
        settings = StarConfig(dim=8, heads=2, head_dim=4) if config is StarConfig else config(dim=8)
        folders.save(TextEncoder.new(settings, tokenizer, 20), work / kind)
        (work / kind / "README.md").unlink()
        results[f"model: {kind}"] = dict(attack(work / kind, _fingerprint, work, budget, SEED))
        print(kind, results[f"model: {kind}"], flush=True)
    return results


def _fingerprint(folder: Path) -> str:
    from linker.encoders import folder as folders

    return folders.load(folder).fingerprint


@benchmark(
    seed=SEED,
    work=(Path | None, "folder for the corpus, kept (otherwise temporary)"),
    documents=1_000_000,
    kinds=(Commas(("flat", "auto")), "of vectors; auto is what a build does by itself"),
    parts=(Commas(PARTS), "which to run; the others stay as recorded"),
    random=(25, "kills of each change at random moments"),
    states=(2000, "of each change, that a power cut may leave"),
    again=(50, "of these, after which the change is made again"),
    changes=([*CHANGES], "for the part power; others stay"),
    corruptions=2000,
    hostile=(250, "models of each kind, altered at random"),
    fuzz_seconds=(60.0, "for each target of the part fuzz"),
)
def measured(options: Arguments) -> Results:
    results = recorded("faults")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        measure: dict[str, Callable[[], Results]] = {
            "memory": lambda: {
                kind: measure_memory(options.work, options.documents, kind) for kind in options.kinds
            },
            "kills": lambda: measure_kills(scratch, options.random),
            "power": lambda: measure_power(scratch, options.changes, options.states, options.again),
            "corruptions": lambda: measure_corruptions(scratch, options.corruptions),
            "hostile": lambda: measure_hostile(scratch, options.hostile),
            "fuzz": lambda: fuzzing.counts("--seconds", str(options.fuzz_seconds)),
        }
        for part in options.parts:
            before = results.get(part, {}) if part in GROWING else {}
            results[part] = {**before, **measure[part]()}
    results["about"] = {
        "texts": f"{LENGTH} words of {WORDS}, by Zipf's law",
        "encoder": "a stand-in: normal vectors, seeded by the hash of each text",
    }
    return results
