"""The flow diagram counts every record once: what was removed, screened, excluded with reasons, included."""

import xml.etree.ElementTree as ET
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from indexes.interface import Document
from linker.review.exporting import export
from linker.review.exporting.prisma import NO_REASON, as_svg, as_text, flow_of
from linker.review.interface import VERDICTS, Judgement, Seed
from linker.review.ledger import Ledger
from tests.review.papers import Corpus

IDS = [f"d{n}" for n in range(12)]
READ = [
    Judgement("s", "d1", "relevant", "ana"),
    Judgement("s", "d2", "not", "ana", tags=("wrong <population>",)),
    Judgement("s", "d3", "not", "ana", tags=("wrong <population>", "no abstract")),
    Judgement("s", "d4", "not", "ana"),
    Judgement("s", "d5", "maybe", "ana"),
    Judgement("s", "d6", "skip", "ana"),
    Judgement("s", "d7", "relevant", "ana", tags=("copy of d1",)),
    Judgement("s", "d8", "relevant", "ana"),
    Judgement("s", "d8", "not", "ben"),
    Judgement("s", "elsewhere", "relevant", "ana"),
]
TEXT = """\
Records identified (n = 12)
  Records removed before screening:
    duplicates (n = 1)
    marked as ineligible by automation tools (n = 4)
Records screened (n = 7)
  Records excluded (n = 3)
    wrong <population> (n = 2)
    no abstract (n = 1)
    no reason given (n = 1)
Studies included in the review (n = 2)
  known beforehand (n = 1)
  Reports awaiting a decision (n = 2)
"""


def test_each_record_takes_one_way(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", durable=False) as ledger:
        ledger.put_seeds([Seed("s", "x", document="d0")])
        ledger.add_all(READ)
        corpus = Corpus({id_: Document(id_, "x") for id_ in IDS})
        report = export(ledger, corpus, tmp_path / "x.txt")
        assert (report.rows, report.what) == (12, "records")
        assert report.path.read_text(encoding="utf-8") == TEXT
        export(ledger, corpus, tmp_path / "x.svg")
        drawn = [
            element.text for element in ET.parse(tmp_path / "x.svg").iter() if element.tag.endswith("text")
        ]
        assert drawn == [line.strip() for line in TEXT.splitlines()]


def test_without_an_index_nothing_is_unread() -> None:
    flow = flow_of(READ)
    assert (flow.identified, flow.unread, flow.copies, flow.included, flow.known) == (8, 0, 1, 2, 0)


GIVEN = st.lists(
    st.builds(
        Judgement, st.just("s"), st.sampled_from([*IDS, "gone"]), st.sampled_from(VERDICTS), st.sampled_from("ab"),
        st.just(""), st.lists(st.sampled_from(["x", "y", "copy of d1", "copy of d2"]), max_size=2).map(tuple),
    )
)  # fmt: skip


@given(GIVEN, st.sets(st.sampled_from(IDS), max_size=2))
def test_the_counts_add_up(judgements: list[Judgement], seeds: set[str]) -> None:
    flow = flow_of(judgements, seeds, IDS)
    assert flow.identified == len(IDS) == flow.copies + flow.unread + flow.screened
    assert flow.screened == flow.excluded + flow.undecided + flow.included
    assert min(flow.copies, flow.unread, flow.excluded, flow.undecided, flow.included, flow.known) >= 0
    assert flow.reasons.get(NO_REASON, 0) <= flow.excluded <= sum(flow.reasons.values())
    assert as_svg(flow).count("<text") == len(as_text(flow).splitlines())
