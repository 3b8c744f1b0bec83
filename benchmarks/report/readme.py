"""Render tables of benchmarks/results into README.md and docs/: `python -m benchmarks.report.readme`.

Tables replace the text between `<!-- results: NAME ... -->` and `<!-- /results -->`, single values (values.py) the
text between `<!-- =NAME -->` and `<!-- /= -->`. A test checks that the pages are up to date.
"""

from __future__ import annotations

import importlib
import json
import re

from benchmarks.report.cells import TABLES, Renderer, ruled
from benchmarks.report.values import render_values
from benchmarks.support.common import RESULTS, ROOT

PAGES = (
    ROOT / "README.md",
    *sorted(
        page for folder in (".", "concepts", "tutorials") for page in (ROOT / "docs" / folder).glob("*.md")
    ),
)
for module in ("cost", "crosslingual", "pair", "rank", "review", "search", "server", "star"):
    # importing a module registers its renderers
    importlib.import_module(f"benchmarks.report.{module}_tables")
MARKED = re.compile(r"(<!-- results: ([\w. ]+) -->\n).*?(<!-- /results -->)", re.DOTALL)


def render(text: str) -> str:
    """Return a page with its results rendered."""

    def section(found: re.Match[str]) -> str:
        parts = [part for name in found[2].split() if (part := _part(name, TABLES[name]))]
        return found[1] + "\n".join(parts) + found[3]

    return render_values(MARKED.sub(section, text))


def _part(name: str, table: Renderer) -> str:
    # the part after a dot names another table of the same results
    path = RESULTS / f"{name.partition('.')[0]}.json"
    if not path.exists():
        return ""
    content = json.loads(path.read_text(encoding="utf-8"))
    machine = content["machine"]
    source = (
        f"*{content['command']}*, {machine['cpu']}, {machine['cores']} cores, commit {content['commit'][:7]}"
    )
    return "\n".join([*ruled(table(content["results"])), "", f"<sub>{source}</sub>", "", ""])


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(render(page.read_text(encoding="utf-8")), encoding="utf-8")
