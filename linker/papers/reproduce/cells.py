"""The harness of the four papers: systems × seeds on a data set give cells, stored in a folder, which fill tables."""

import math
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from linker.base.errors import InputError, LinkerError
from linker.base.files import read_json, write_atomically
from linker.base.version import __version__
from linker.evaluation.correlation import williams_from_scores
from linker.papers.reproduce.frame import figures_of, mean_over_seeds, published, row, table

Measures = Mapping[str, float | int | None]
QUICK = 200  # links or pairs that --quick keeps
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a cell: measures by name, and the scores of the judged pairs [n] if a test compares systems."""

    measures: Measures
    scores: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class System:
    """A row of a paper's table: `run(seed)` gives its cell.

    `why`: why its figures differ from the published ones; `chance`: whether they depend on the seed, so that several
    seeds are needed; `rival`: the system that it is compared with, by a Williams test of pairs' scores or over seeds.
    """

    name: str
    run: Callable[[int], Outcome]
    why: str = ""
    chance: bool = False
    rival: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """A paper's data set, and the systems evaluated on it.

    `tables`: titles and measures, all filled from the same cells; `reasons`: why all figures differ; `gold`: the
    judgements [n] of the pairs that systems score; `made_of`: a hash of the data and settings, to match stored cells.
    """

    name: str
    tables: Sequence[tuple[str, Sequence[str]]]
    systems: Sequence[System]
    reasons: Sequence[str] = ()
    gold: Sequence[float] = ()
    made_of: str = ""


def fingerprint(paths: Iterable[Path], *settings: object) -> str:
    """Return a hexadecimal hash of files' names and contents and of settings."""
    found = sha256(repr((__version__, settings)).encode())
    for path in paths:
        found.update(path.name.encode())
        with path.open("rb") as file:
            found.update(file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


def run(paper: str, data: Path, work: Path, seeds: int, *, quick: bool, log: Log) -> dict[str, Any]:
    """Return the tables of a paper ("ast", "semeval", "bucc" or "cbg") on the data in a folder, as JSON values.

    `work` keeps models and finished cells. Raises InputError if the folder holds none of the paper's data, or no
    system can be run; MissingExtraError if a library is missing.
    """
    if not data.is_dir():
        raise InputError(f"there is no folder {data}")
    work.mkdir(parents=True, exist_ok=True)
    # Only the paper's own module: each loads other libraries.
    studies = import_module(f"linker.papers.reproduce.{paper}").studies(data, work, quick)
    return reproduce(paper, studies, work, seeds, log)


def reproduce(paper: str, studies: Sequence[Study], work: Path, seeds: int, log: Log) -> dict[str, Any]:
    """Run the cells that the folder `work` lacks, and return the paper's name and tables as JSON values.

    The row of a system that lacks a model, a translator or other data says so, or has the seeds that could be run.
    `log` is called with a line per cell. Raises InputError if no cell at all can be run.
    """
    tables, ran = [], False
    for study in studies:
        found: dict[str, list[dict[str, Any]]] = {}
        missing: dict[str, str] = {}
        for system in study.systems:
            try:
                for seed in range(seeds if system.chance else 1):
                    found.setdefault(system.name, []).append(_cell(study, system, seed, work, log))
            except LinkerError as e:
                missing[system.name] = _sentence(str(e))
                log(f"{study.name}, {system.name}: not run: {missing[system.name]}")
        ran = ran or bool(found)
        tables += [_table(paper, study, number, found, missing) for number in range(len(study.tables))]
    if not ran:
        raise InputError(f"no cell of {paper} could be run: the lines above say what each system lacks")
    return {"paper": published(paper)["paper"], "tables": tables}


def _cell(study: Study, system: System, seed: int, work: Path, log: Log) -> dict[str, Any]:
    """Return a cell from its file or, if there is none for this data and these settings, by running it."""
    path = work / study.name / f"{re.sub(r'[^a-z0-9]+', '-', system.name.lower()).strip('-')}.{seed}.json"
    if path.exists():
        cell: dict[str, Any] = read_json(path)
        if cell.get("made_of") == study.made_of and cell.get("system") == system.name:
            return cell
    start = time.process_time()
    outcome = system.run(seed)
    measures = {name: _known(value) for name, value in outcome.measures.items()}
    cell = {
        "made_of": study.made_of,
        "system": system.name,
        "seed": seed,
        "cpu_s": round(time.process_time() - start, 1),
        "measures": measures,
        "scores": [float(score) for score in outcome.scores],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, orjson.dumps(cell))
    figures = ", ".join(
        f"{name} {value:g}" for name, value in list(measures.items())[:3] if value is not None
    )
    log(f"{study.name}, {system.name}, seed {seed}: {figures} ({cell['cpu_s']:g} CPU-seconds)")
    return cell


def _known(value: float | int | None) -> float | int | None:
    if value is None or isinstance(value, int):
        return value
    return None if math.isnan(value) else round(float(value), 4)


def _table(
    paper: str,
    study: Study,
    number: int,
    by_system: Mapping[str, Sequence[Mapping[str, Any]]],
    missing: Mapping[str, str],
) -> dict[str, Any]:
    """Return one of a study's tables; the last rows are systems that only the paper has."""
    title, measures = study.tables[number]
    known = figures_of(paper, study.name, measures)
    rows = []
    for system in study.systems:
        cells = by_system.get(system.name, ())
        ours = {m: _over_seeds(values) for m in measures if (values := _values(cells, m))}
        if ours:
            rows.append(row(system.name, known.get(system.name, {}), ours, system.why if not number else ""))
        elif system.name in missing and not number:
            why = f"not run: {missing[system.name]}"
            rows.append(row(system.name, known.get(system.name, {}), {}, why, "not run"))
    names = {system.name for system in study.systems}
    rows += [row(name, figures, {}) for name, figures in known.items() if name not in names]
    frame = table(title, measures, rows, "; ".join(study.reasons))
    if not number:
        compared = {"tests": _tests(study, by_system), "differences": _differences(study, by_system)}
        frame |= {name: values for name, values in compared.items() if values}
    return frame


def _values(cells: Sequence[Mapping[str, Any]], measure: str) -> list[Any]:
    values = [cell["measures"].get(measure) for cell in cells]
    return [] if None in values else values


def _over_seeds(values: list[Any]) -> Any:
    """Return the single value of a deterministic system, a count that all seeds share, or all values."""
    return values[0] if len(values) == 1 or (len({*values}) == 1 and isinstance(values[0], int)) else values


def _tests(study: Study, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Any]:
    """Return [A, B, p of each seed] of Williams's tests between systems and their rivals, the better one first."""
    tests = []
    for system in study.systems:
        pair = [found.get(name, ()) for name in (system.name, system.rival)]
        if not all(cells and cells[0]["scores"] for cells in pair):
            continue
        names = [system.name, system.rival]
        seeds = max(map(len, pair))
        scores = [[cells[min(seed, len(cells) - 1)]["scores"] for seed in range(seeds)] for cells in pair]
        first = [
            statistics.fmean(c["measures"][study.tables[0][1][0]] or -1 for c in cells) for cells in pair
        ]
        order = (0, 1) if first[0] >= first[1] else (1, 0)
        results = [
            williams_from_scores(study.gold, *(scores[side][seed] for side in order)) for seed in range(seeds)
        ]
        ps = [None if math.isnan(result.p) else round(result.p, 4) for result in results]
        tests.append([*(names[side] for side in order), ps])
    return tests


def _differences(study: Study, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Any]:
    """Return [A, B, A's first measure minus B's] of systems and their rivals, over the seeds that both have."""
    measure, differences = study.tables[0][1][0], []
    for system in study.systems:
        both = [found.get(name, ()) for name in (system.name, system.rival)]
        pairs = list(zip(*(_values(cells, measure) for cells in both), strict=False))
        if len(pairs) > 1 and not both[0][0]["scores"]:
            values = [float(ours - theirs) for ours, theirs in pairs]
            differences.append([system.name, system.rival, mean_over_seeds(values)])
    return differences


def _sentence(text: str) -> str:
    return re.split(r"(?<=[a-z0-9)'])[.] (?=[A-Z])", " ".join(text.split()))[0].rstrip(".")
