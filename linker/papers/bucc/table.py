"""The shared tasks' tables: ranks over all pages and answered pages (2015), mined links (2017), and differences."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.base.files import read_bytes
from linker.evaluation import Entries, Evaluation, evaluate, read_qrels, read_run
from linker.evaluation.comparison import compare
from linker.evaluation.evaluator import Resampling
from linker.evaluation.mined import MinedLinks, best_threshold, compare_f1, mined_links
from linker.evaluation.significance import holm
from linker.evaluation.tables import plain

MEASURES = ("recip_rank", "success_1", "success_5")
NAMES = {"recip_rank": "MRR", "success_1": "S@1", "f1": "F1"}
HEADER = ("lang", "run", "pages", "coverage", "MRR", "S@1", "S@5", "MRR ans.", "S@1 ans.", "S@5 ans.")
LINKS_HEADER = ("lang", "run", "precision", "recall", "F1", "95% interval", "links", "threshold")
DIFFERENCES_HEADER = ("measure", "lang", "run", "difference", "95% interval", "p", "p (Holm)")
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Which links of a run are reported, and how intervals and tests are computed.

    `threshold`: the minimum score of a link; `best_threshold`: for each run, the threshold with the highest F1 on the
    gold links themselves (an oracle); `known`: pages that are left out, such as those of training links.
    """

    threshold: float | None = None
    best_threshold: bool = False
    known: frozenset[str] = frozenset()
    intervals: Resampling = field(default_factory=Resampling)
    tests: Resampling = field(default_factory=lambda: Resampling(10_000))


@dataclass(frozen=True, slots=True)
class Difference:
    """A run minus the baseline in one measure: bootstrap interval, p-value, and p adjusted over the language's rows."""

    measure: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class TableRow:
    """A run in one language.

    `MEASURES` over all pages (`complete`) and over the answered pages (`answered`); number, precision, recall and F1
    of the links that it reports; 95 % intervals by measure; and differences from `baseline`, the first run.
    """

    language: str
    run: str
    pages: int
    coverage: float
    complete: tuple[float, ...]
    answered: tuple[float, ...]
    links: int
    unjudged: int
    precision: float
    recall: float
    f1: float
    threshold: float | None
    best_threshold: bool
    intervals: dict[str, Interval]
    baseline: str | None = None
    differences: tuple[Difference, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = asdict(self)
        return values | {
            name: dict(zip(MEASURES, values[name], strict=True)) for name in ("complete", "answered")
        }

    def cells(self) -> tuple[str, ...]:
        """Return the row's text in each column of `HEADER`."""
        numbers = (self.coverage, *self.complete, *self.answered)
        return (self.language, self.run, str(self.pages), *(f"{number:.3f}" for number in numbers))

    def link_cells(self) -> tuple[str, ...]:
        """Return the row's text in each column of `LINKS_HEADER`."""
        low, high = self.intervals["f1"]
        threshold = "none" if self.threshold is None else f"{self.threshold:.4g}"
        return (
            self.language, self.run, f"{self.precision:.3f}", f"{self.recall:.3f}", f"{self.f1:.3f}",
            f"[{low:.3f}, {high:.3f}]", str(self.links), f"{threshold}{' (oracle)' if self.best_threshold else ''}",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Result:
    row: TableRow
    run: Entries[float]
    mined: MinedLinks


def evaluate_runs(
    qrels: Sequence[Path], runs: Sequence[Path], settings: TableSettings | None = None
) -> list[TableRow]:
    """Evaluate every run on all qrels for which it has lines; qrels named fr.test.txt are for the language "fr".

    In each language, the first run is the baseline of the others. Pages of a run that no qrels judge have no
    counterpart, so their links count as false. A run whose file is empty answers no page: it scores 0 in all languages,
    and is not compared with other runs. Raises InputError if a run has no line for any of the qrels.
    """
    how = settings or TableSettings()
    gold = {path: read_qrels(path) for path in qrels}
    results: dict[Path, list[_Result]] = {path: [] for path in qrels}
    silent = [path for path in runs if not read_bytes(path)]
    for path in (path for path in runs if path not in silent):
        run = read_run(path)
        matching = [name for name, judged in gold.items() if not judged.keys().isdisjoint(run)]
        if not matching:
            names = ", ".join(file.name for file in qrels)
            raise InputError(f"{path}: no line for any page of {names}; do the ids agree?")
        for name in matching:
            others = {page for other, judged in gold.items() if other != name for page in judged}
            foreign = _of_other_languages(run, gold[name], others)
            results[name].append(_result(name, gold[name], run, how, foreign))
    rows = [row for name, found in results.items() for row in _compared(gold[name], found, how)]
    rows += [_nothing(name, gold[name], path.stem, how) for path in silent for name in qrels]
    return sorted(rows, key=lambda row: (row.language, -row.complete[0], row.run))


def _nothing(path: Path, qrels: Entries[int], run: str, how: TableSettings) -> TableRow:
    zeros = (0.0,) * len(MEASURES)
    return TableRow(
        language=path.name.partition(".")[0], run=run, pages=len(qrels), coverage=0.0, complete=zeros, answered=zeros,
        links=0, unjudged=0, precision=0.0, recall=0.0, f1=0.0, threshold=how.threshold, best_threshold=False,
        intervals=dict.fromkeys((*MEASURES, "precision", "recall", "f1"), (0.0, 0.0)),
    )  # fmt: skip


def _of_other_languages(run: Collection[str], own: Collection[str], others: Collection[str]) -> set[str]:
    """Return the pages of a run that other qrels judge, or whose ids have a prefix that only those use (de0012)."""
    prefixes = {_prefix(page) for page in others} - {_prefix(page) for page in own}
    return {page for page in run if page in others or _prefix(page) in prefixes}


def _prefix(page: str) -> str:
    return page.rstrip("0123456789")


def _result(
    path: Path, qrels: Entries[int], run: Entries[float], how: TableSettings, foreign: Collection[str]
) -> _Result:
    complete = evaluate(qrels, run, MEASURES, intervals=how.intervals)
    answered = evaluate(qrels, run, MEASURES, complete=False)
    left_out = {*how.known, *foreign} - qrels.keys()
    threshold = best_threshold(qrels, run, left_out) if how.best_threshold else how.threshold
    mined = mined_links(qrels, run, threshold, left_out)
    row = TableRow(
        language=path.name.partition(".")[0],
        run=complete.run_name,
        pages=complete.num_topics,
        coverage=complete.num_answered / complete.num_topics,
        complete=_values(complete),
        answered=_values(answered),
        links=mined.links,
        unjudged=mined.unjudged,
        precision=mined.precision,
        recall=mined.recall,
        f1=mined.f1,
        threshold=threshold,
        best_threshold=how.best_threshold,
        intervals={**complete.intervals, **mined.intervals(how.intervals)},
    )
    return _Result(row, run, mined)


def _values(evaluation: Evaluation) -> tuple[float, ...]:
    return tuple(evaluation[name] for name in MEASURES)


def _compared(qrels: Entries[int], results: Sequence[_Result], how: TableSettings) -> list[TableRow]:
    """Return the rows of one language; every row but the first includes its differences from the first."""
    if len(results) < 2:
        return [result.row for result in results]
    first, *others = results
    found = [_differences(qrels, first, other, how) for other in others]
    adjusted = iter(holm([p for rows in found for *_, p in rows]))
    rows = [first.row]
    for other, values in zip(others, found, strict=True):
        differences = tuple(Difference(*value, p_holm=next(adjusted)) for value in values)
        rows.append(replace(other.row, baseline=first.row.run, differences=differences))
    return rows


def _differences(
    qrels: Entries[int], first: _Result, other: _Result, how: TableSettings
) -> list[tuple[str, float, float, float, float]]:
    # By number, because two runs may have the same name.
    runs = [dict(result.run) for result in (first, other)]
    rows = compare(qrels, runs, MEASURES[:2], samples=how.tests.samples, seed=how.tests.seed).rows
    ranked = [
        (row.measure, row.difference, row.low or 0.0, row.high or 0.0, row.p or 0.0)
        for row in rows
        if row.difference is not None
    ]
    return [*ranked, ("f1", *compare_f1(first.mined, other.mined, how.tests))]


def to_text(rows: Sequence[TableRow]) -> str:
    """Return the tables with aligned columns: ranks, mined links and, for several runs, differences."""
    links = plain([LINKS_HEADER, *(row.link_cells() for row in rows)])
    differences = [
        (
            NAMES[d.measure], row.language, f"{row.run} – {row.baseline}", f"{d.difference:+.3f}",
            f"[{d.low:+.3f}, {d.high:+.3f}]", f"{d.p:.4f}", f"{d.p_holm:.4f}",
        )
        for row in rows
        for d in row.differences
    ]  # fmt: skip
    compared = f"\n{plain([DIFFERENCES_HEADER, *differences])}" if differences else ""
    return f"{_ranks(rows)}\n{links}{compared}"


def _ranks(rows: Sequence[TableRow]) -> str:
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    return "".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = list(zip(cells, widths, strict=True))
    return "  ".join([*(c.ljust(w) for c, w in pairs[:2]), *(c.rjust(w) for c, w in pairs[2:])]) + "\n"


def remarks(rows: Sequence[TableRow]) -> list[str]:
    """Return notes that the tables cannot show: links of unjudged pages, and thresholds that are oracles."""
    lines = [
        f"{row.language}: {row.unjudged:,} of the {row.links:,} links of {row.run} belong to pages without a gold link "
        "and count as false; leave pages with known links out with --known"
        for row in rows
        if row.unjudged
    ]
    if any(row.best_threshold for row in rows):
        lines.append("oracle: the threshold was chosen on the gold links; a system cannot know it")
    return lines
