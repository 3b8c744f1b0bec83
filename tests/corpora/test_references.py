"""RIS and NBIB become documents: titles, abstracts, lists of authors and keywords, ids that stay unchanged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.interface import Document
from linker.corpora import BadLine, Columns, read_corpus
from linker.corpora.references import tagged_records

RIS = """\ufeffTY  - JOUR
AU  - Doe, Jane
AU  - Roe, Rém
TI  - Heavy rain
T2  - Journal of Floods
AB  - It rained.
SARS- CoV and rain
N1  - ASReview_relevant
PY  - 2020/03/01
DA  - 2020/03/01/
DO  - 10.1000/flood
KW  - rain
KW  - flood
SP  - 12
EP  - 19
UR  - https://example.org/1
ER  -

TY  - GEN
T1  - No id, no DOI
N2  - An abstract of its own
ER  -
TY  - GEN
T1  - No id, no DOI
N2  - An abstract of its own
ER  -
TY  - GEN
ID  - 17
ER  -
TY  - GEN
TI  - cut
"""
NBIB = """
PMID- 30000001
OWN - NLM
DP  - 2018 Jul 5
TI  - Interventions for
      heavy rain.
LID - 10.1000/rain [doi]
LID - S0001 [pii]
AB  - BACKGROUND: COX- 2 was
      measured.
FAU - Doe, Jane
AU  - Doe J
AU  - Roe R
LA  - eng
PT  - Journal Article
PT  - Review
JT  - Rain research
MH  - *Rain
OT  - flood
OT  - storm

PMID- 30000002
TI  - Title only
"""


def read(folder: Path, name: str, text: str, columns: Columns | None = None) -> list[Document | BadLine]:
    (folder / name).write_text(text, encoding="utf-8")
    return [*read_corpus(folder / name, columns)]


def test_ris(tmp_path: Path) -> None:
    first, second, third, empty, cut = read(tmp_path, "x.ris", RIS)
    assert isinstance(first, Document)
    assert (first.id, first.title, first.text) == (
        "10.1000/flood",
        "Heavy rain",
        "It rained. SARS- CoV and rain",
    )
    assert first.metadata == {
        "authors": ["Doe, Jane", "Roe, Rém"], "year": 2020, "journal": "Journal of Floods",
        "keywords": ["rain", "flood"], "doi": "10.1000/flood", "url": "https://example.org/1", "date": "2020-03-01",
        "pages": "12-19", "type": "JOUR",
    }  # fmt: skip
    assert isinstance(second, Document)
    assert isinstance(third, Document)
    assert (second.text, third.id) == ("An abstract of its own", f"{second.id}-2")
    assert isinstance(empty, BadLine)
    assert (empty.line, empty.reason) == (27, "no text: text and title are empty")
    assert isinstance(cut, BadLine)
    assert cut.reason == "a record without its end (ER)"


def test_nbib(tmp_path: Path) -> None:
    first, second = read(tmp_path, "x.nbib", NBIB)
    assert isinstance(first, Document)
    assert (first.id, first.title) == ("30000001", "Interventions for heavy rain.")
    assert first.text == "BACKGROUND: COX- 2 was measured."
    assert first.metadata == {
        "authors": ["Doe J", "Roe R"], "year": 2018, "journal": "Rain research", "keywords": ["flood", "storm"],
        "doi": "10.1000/rain", "language": "eng", "type": "Journal Article",
    }  # fmt: skip
    assert isinstance(second, Document)
    assert (second.id, second.title, second.text, second.metadata) == ("30000002", "Title only", "", {})


def test_ids_are_made_of_the_content_if_asked(tmp_path: Path) -> None:
    own = read(tmp_path, "x.ris", RIS.replace("DO  - 10.1000/flood\n", ""))[0]
    made = read(tmp_path, "x.ris", RIS, Columns(id=None))[0]
    assert isinstance(own, Document)
    assert isinstance(made, Document)
    assert own.id == made.id != "10.1000/flood"


def test_an_old_file_is_read_in_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "x.ris").write_bytes(RIS.removeprefix("\ufeff").encode("cp1252"))
    first = next(read_corpus(tmp_path / "x.ris"))
    assert isinstance(first, Document)
    assert first.metadata["authors"][1] == "Roe, Rém"


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [b"TY  - JOUR", b"ER  - ", b"PMID- 1", b"TI  - a", b"      more", b"AB- 2", b"", b"\xff"]
        ),
        st.binary(max_size=12).filter(lambda raw: b"\n" not in raw),
    )
)


@pytest.mark.parametrize("limit", [1 << 20, 20])
@given(lines=LINES)
def test_whatever_comes_each_record_is_fields_or_a_reason(lines: list[bytes], limit: int) -> None:
    records = [*tagged_records([(n, raw, len(raw)) for n, raw in enumerate(lines, start=1)], limit)]
    starts = [n for n, raw in enumerate(lines, start=1) if raw[:5] in (b"TY  -", b"PMID-")]
    assert [number for number, _, _ in records] == starts
    for _, raw, fields in records:
        assert len(raw) <= limit
        assert isinstance(fields, str) or {tag for tag, _ in fields} & {"TY", "PMID"}
