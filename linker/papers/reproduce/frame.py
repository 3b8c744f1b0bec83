"""The layout of the papers' tables: a system's published figures, our figures, and why the two differ.

A table is a dictionary that JSON can hold; docs/published.md and `linker reproduce` show the same tables.
"""

import math
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from linker.base.printable import json_text
from linker.evaluation.tables import latex, markdown

Value = float | int | str | None | Sequence[float]


@cache
def published(paper: str) -> dict[str, Any]:
    """Return a paper's entries in published.toml: its name as `paper`, and its `cells`."""
    text = files("linker.papers.reproduce").joinpath("published.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)[paper]
    return found


def figures_of(paper: str, study: str, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the published figures of a study's systems, for the measures in a table."""
    systems: dict[str, dict[str, float]] = {}
    for cell in published(paper)["cells"]:
        figures = {name: value for name, value in cell["figures"].items() if name in measures}
        if figures and study in cell.get("studies", [study]):
            systems.setdefault(cell["system"], {}).update(figures)
    return systems


def table(
    title: str, measures: Sequence[str], rows: Sequence[Mapping[str, Any]], why: str = ""
) -> dict[str, Any]:
    """Return a table of `rows` (made by `row`) with a column per measure, and the reasons why the figures differ."""
    return {"title": title, "measures": list(measures), "rows": list(rows), "why": why}


def row(
    system: str, published: Mapping[str, Value], here: Mapping[str, Value], why: str = "", runs: str = "here"
) -> dict[str, Any]:
    """Return a system's two lines; `runs` labels ours. A list of figures becomes its mean with the number of seeds."""
    seeds = max((len(v) for v in here.values() if isinstance(v, (list, tuple))), default=0)
    ours = {name: mean_over_seeds(value) for name, value in here.items()}
    label = f"{runs} ({seeds} seed{'s' * (seeds > 1)})" if seeds else runs
    return {"system": system, "published": dict(published), "here": ours, "label": label, "why": why}


def mean_over_seeds(value: Value) -> Any:
    """Return the mean of a list, its standard deviation and the 95 % interval of the mean by Student's t."""
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) == 1 and isinstance(value[0], int):
        return value[0]  # a count
    mean, n = round(statistics.fmean(value), 4), len(value)
    if n == 1:
        return {"mean": mean, "sd": None}
    from scipy.special import stdtrit

    sd = statistics.stdev(value)
    half = float(stdtrit(n - 1, 0.975)) * sd / math.sqrt(n)
    return {"mean": mean, "sd": round(sd, 4), "interval": [round(mean - half, 4), round(mean + half, 4)]}


def cells(shown: Mapping[str, Any]) -> list[list[str]]:
    """Return a table's text, its header first: per system a published line and ours; the reasons last, if any."""
    measures, each = shown["measures"], any(row["why"] for row in shown["rows"])
    lines = [["", "", *measures, *(["why they differ"] if each else [])]]
    for one in shown["rows"]:
        pair = [("published", one["published"], "")] if one["published"] else []
        if one["here"] or one["why"] or not pair:
            pair.append((one["label"], one["here"], one["why"]))
        for n, (label, values, why) in enumerate(pair):
            figures = [_cell(values.get(m)) for m in measures]
            lines.append(["" if n else one["system"], label, *figures, *([why] if each else [])])
    return lines


def _cell(value: Any) -> str:
    """Return a figure with three decimals and its deviation over seeds; an integer is a count, None is empty."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, str):
        return value
    sd = "" if value["sd"] is None else " ± " + f"{value['sd']:.3f}".removeprefix("0")
    return f"{value['mean']:.3f}{sd}"


def remarks(shown: Mapping[str, Any]) -> list[str]:
    """Return the lines below a table: its Williams tests, differences over seeds, and why all its figures differ."""
    lines = [
        f"{a} ahead of {b}: p = {', '.join(map(_p, ps))} (Williams, one-sided, per seed)"
        for a, b, ps in shown.get("tests", [])
    ]
    for rival in dict.fromkeys(b for _, b, _ in shown.get("differences", [])):
        each = [f"{a} {_signed(value)}" for a, b, value in shown["differences"] if b == rival]
        lines.append(
            f"{shown['measures'][0]} minus that of {rival} (95 %, paired by seed): {'; '.join(each)}."
        )
    return [*lines, *([f"Why they differ: {shown['why']}."] if shown["why"] else [])]


def _signed(value: Mapping[str, Any]) -> str:
    low, high = value["interval"]
    return f"{value['mean']:+.3f} ({low:+.3f} to {high:+.3f})"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return a paper's tables as Markdown, each under its title and above its remarks."""
    return "\n".join(
        f"**{one['title']}**\n\n{markdown(cells(one))}" + "".join(f"\n{line}\n" for line in remarks(one))
        for one in found["tables"]
    )


def as_latex(found: Mapping[str, Any]) -> str:
    """Return a paper's tables as LaTeX tabulars (package booktabs), titles and remarks as comments."""
    return "\n".join(
        f"% {one['title']}\n{latex(cells(one))}" + "".join(f"% {line}\n" for line in remarks(one))
        for one in found["tables"]
    )


FORMATS = {".md": as_markdown, ".tex": as_latex, ".json": json_text}  # by file suffix
