"""Render tables of benchmarks/results into README.md and docs/: `python -m benchmarks.report.readme`.

Tables (tables/*.jinja) replace the text between `<!-- results: NAME ... -->` and `<!-- /results -->`, single values
(values.py) the text between `<!-- =NAME -->` and `<!-- /= -->`. A test checks that the pages are up to date.
"""

from __future__ import annotations

import json
import re

import benchmarks.report.figures  # noqa: F401  # its functions are those of the templates
from benchmarks.report.cells import lines, templates
from benchmarks.report.values import render_values
from benchmarks.support.common import RESULTS, ROOT

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
    machine = content["machine"]
    source = (
        f"*{content['command']}*, {machine['cpu']}, {machine['cores']} cores, commit {content['commit'][:7]}"
    )
    return "\n".join([*lines(TABLES[name], content["results"]), "", f"<sub>{source}</sub>", "", ""])


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(render(page.read_text(encoding="utf-8")), encoding="utf-8")
