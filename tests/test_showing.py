"""Interactive display: names in the package, one-line values, and notebook tables with escaped texts."""

from __future__ import annotations

import pydoc
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import linker
from indexes.hybrid import Answer
from indexes.interface import Document, Hits
from indexes.showing import table
from linker.engine import Engine, building


class Cells(HTMLParser):
    """Collects tags and cell texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        self.tags.add(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1), min_size=1
    )
)
def test_a_table_holds_texts_as_they_are(texts: list[str]) -> None:
    seen = Cells()
    seen.feed(table([texts]))
    seen.close()
    assert seen.cells == texts
    assert seen.tags == {"table", "tr", "td"}


def hits(count: int) -> Hits:
    scores = np.linspace(1, 0.5, count, dtype=np.float32)
    return Hits(
        tuple(f"d{n}" for n in range(count)), scores, lambda id_: Document(id_, f"<b>{id_}</b>\n" * 99)
    )


def test_hits_and_answers_are_short_lines() -> None:
    assert repr(hits(2)) == "<2 hits: d0 1, d1 0.5>"
    assert repr(hits(0)) == "<0 hits>"
    assert repr(hits(12)).endswith(", and 2 more>")
    assert repr(Answer([hits(1), hits(0)], "bm25")) == "<Answer by bm25: <1 hits: d0 1>, <0 hits>>"
    assert "hybrid, reranked" in repr(Answer([], "hybrid", reranked=True))
    assert [(id_, document and document.id) for id_, _, document in hits(2)] == [("d0", "d0"), ("d1", "d1")]
    assert list(Hits(("a",), np.ones(1, np.float32))) == [("a", 1.0, None)]


def test_tables_escape_texts_and_are_short() -> None:
    shown = Answer([hits(99)] * 99, "hybrid", degraded="<script>")._repr_html_()
    assert "&lt;b&gt;d0&lt;/b&gt; &lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "<script>" not in shown
    assert shown.count("<tr>") == 10 * 11
    assert "10 of 99 queries" in shown


def test_an_engine_tells_what_it_is(tmp_path: Path) -> None:
    building.create(tmp_path / "i")
    with Engine(tmp_path / "i") as engine:
        engine.add([Document("a", "x")])
        line = f"<Engine '{tmp_path}/i': 1 documents, bm25, no encoder, embedded, generation 1>"
        assert re.sub(r"generation \d+", "generation 1", repr(engine)) == line
        assert "<td>no encoder</td>" in engine._repr_html_()
    assert repr(engine).endswith(": closed>")
    assert "closed" in engine._repr_html_()


def test_dir_and_help_show_the_surface_and_import_nothing() -> None:
    assert {name for name in dir(linker) if not name.startswith("__")} == set(linker.__all__)
    text = pydoc.plain(pydoc.render_doc(linker))
    for name in linker.__all__:
        assert re.search(rf"^    (class )?{name}\(", text, re.MULTILINE), name
    for line in ("__getattr__", "TYPE_CHECKING", "lazy"):
        assert line not in text
    script = "import sys, linker; dir(linker); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_notebook_marks_query_words_and_escapes_them(tmp_path: Path) -> None:
    building.create(tmp_path / "i")
    with Engine(tmp_path / "i") as engine:
        engine.add([Document("a", "<i>Floods</i> & " + "rain " * 99)])
        shown = engine.search("flood <i>")._repr_html_()
    assert "&lt;i&gt;<mark>Floods</mark>&lt;/i&gt; &amp; rain" in shown
    assert " …</td>" in shown
