"""Render tables of benchmarks/results into README.md and docs/: `python -m benchmarks.report.readme`.

Tables (tables/*.jinja) replace the text between `<!-- results: NAME ... -->` and `<!-- /results -->`, single values
(values.py) the text between `<!-- =NAME -->` and `<!-- /= -->`. A test checks that the pages are up to date.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import benchmarks.report.figures  # noqa: F401  # its functions are those of the templates
from benchmarks.report.cells import lines, templates
from benchmarks.report.values import render_values
from benchmarks.support.common import RESULTS, ROOT, source

PAGES = (
    ROOT / "README.md",
    *sorted(
        page for folder in (".", "concepts", "tutorials") for page in (ROOT / "docs" / folder).glob("*.md")
    ),
)
MARKED = re.compile(r"(<!-- results: ([\w. ]+) -->\n).*?(<!-- /results -->)", re.DOTALL)
TABLES = templates()


def render(text: str) -> str:
    """Return a page with its results rendered."""
    text = MARKED.sub(lambda found: found[1] + "\n".join(map(_part, found[2].split())) + found[3], text)
    return render_values(text)


def _part(name: str) -> str:
    # the part after a dot names another table of the same results
    content = json.loads((RESULTS / f"{name.partition('.')[0]}.json").read_text(encoding="utf-8"))
    found = "; ".join(sources(name, content))
    return "\n".join([*lines(TABLES[name], content["results"]), "", f"<sub>{found}</sub>", "", ""])


def sources(name: str, content: Mapping[str, Any]) -> list[str]:
    """Return where the results in a table come from: of its own part or, without one, of all parts without a table."""
    file, _, table = name.partition(".")
    kinds = {part: part.partition("-")[0] for part in content.get("parts", {})}
    parts = [part for part, kind in kinds.items() if table in (part, kind)]
    parts = parts or [part for part, kind in kinds.items() if f"{file}.{kind}" not in TABLES]
    return [*dict.fromkeys(content["parts"][part] for part in parts)] or [source(content)]


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(render(page.read_text(encoding="utf-8")), encoding="utf-8")
