"""Simulated reviews: their measures on worked numbers, and whole reviews of a small index from each kind of start."""

import dataclasses
import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from indexes.interface import Document
from linker.base.errors import InputError
from linker.cli.entry import app
from linker.engine import Engine, building
from linker.review.simulating import Plan, Simulated, recall_plot, simulate

pytest.importorskip("sklearn")

WORKED = Simulated("t", 0, 100, 4, (1, 1, 2, 2, 2, 3, 3, 4), 6)


def test_measures_have_worked_numbers() -> None:
    assert [WORKED.reads_to(count) for count in range(6)] == [None, 1, 3, 6, 8, None]
    assert (WORKED.reads(0.5), WORKED.reads(0.75), WORKED.reads(0.76), WORKED.reads(1.0)) == (3, 6, 8, 8)
    assert WORKED.saved() == pytest.approx(1 - 8 / 100 - 0.05)
    ideal = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3, 4))
    assert WORKED.ndcg == pytest.approx(sum(1 / math.log2(rank + 1) for rank in (1, 3, 6, 8)) / ideal)
    assert WORKED.recall == 0.75
    cut = dataclasses.replace(WORKED, found=WORKED.found[:5], stop=None)
    assert (cut.reads(0.95), cut.saved(), cut.recall) == (None, None, None)
    assert cut.ndcg == pytest.approx(sum(1 / math.log2(rank + 1) for rank in (1, 3)) / ideal)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of 120 documents: 20 about rain, 30 about trade, with words that both share."""
    place = tmp_path_factory.mktemp("simulated") / "i"
    building.create(place)
    words = ("heavy rain floods the river", "wheat and trade at the port", "a game of chess in the park")
    with Engine(place) as engine:
        engine.add(
            Document(f"d{n}", f"{words[0 if n < 20 else 1 if n < 50 else 2]} number{n % 7} place{n % 11}")
            for n in range(120)
        )
    return place


QRELS = {
    "rain": {f"d{n}": 1 for n in range(20)},
    "trade": {f"d{n}": 1 for n in range(20, 50)},
    "none": {"gone": 1},
}


def test_a_review_finds_what_is_relevant_and_stops(index: Path) -> None:
    with Engine(index) as engine:
        reviews = list(simulate(engine, QRELS, Plan(starts=2)))
        assert [(r.topic, r.start, r.relevant) for r in reviews] == [
            ("rain", 0, 17), ("rain", 1, 17), ("trade", 0, 27), ("trade", 1, 27),
        ]  # fmt: skip
        for review in reviews:
            assert review.population == 117
            assert review.found[-1] == review.relevant
            assert review.reads(1.0) == review.relevant  # the words distinguish the topics
            assert review.recall == 1
            assert review.ndcg == pytest.approx(1)
            assert review.reads_to(10) == 10
        assert list(simulate(engine, QRELS, Plan(starts=2))) == reviews
        assert all(len(r.found) == 5 for r in simulate(engine, QRELS, Plan(most=5)))


def test_a_review_begins_with_a_description_or_at_random(index: Path) -> None:
    with Engine(index) as engine:
        (told,) = simulate(engine, {"rain": QRELS["rain"]}, Plan({"rain": "floods of a river"}))
        assert (told.relevant, told.population, told.reads(1.0)) == (20, 120, 20)
        (blind,) = simulate(engine, {"rain": QRELS["rain"]}, Plan(seeds=0))
        assert (blind.relevant, blind.population, blind.found[-1]) == (20, 120, 20)
        with pytest.raises(InputError, match="no description of the topic 'none'"):
            list(simulate(engine, QRELS, Plan({"rain": "x", "trade": "y"})))


def test_the_command_prints_a_table_json_and_a_plot(
    index: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    qrels = tmp_path / "topics.qrels"
    qrels.write_text("".join(f"{t} 0 {d} {g}\n" for t, ids in QRELS.items() for d, g in ids.items()), "utf-8")
    ran = CliRunner().invoke(
        app, ["review", "simulate", str(index), str(qrels), "--plot", str(tmp_path / "p.svg")]
    )
    assert ran.exit_code == 0, ran.output
    header, *rows = [line.split() for line in ran.stdout.splitlines()]
    assert " ".join(header).startswith(
        "topic start relevant read to first 10 to 80 to 90 to 95 to 100 wss 95 ndcg stop"
    )
    assert [row[0] for row in rows] == ["rain", "trade", "mean"]
    curves = [e for e in ET.parse(tmp_path / "p.svg").iter() if e.get("stroke") == "#0b66c3"]
    assert len(curves) == 2
    (tmp_path / "topics.json").write_text(json.dumps(QRELS), "utf-8")
    command = ["review", "simulate", str(index), str(tmp_path / "topics.json"), "--json", "--max-read", "5"]
    ran = CliRunner().invoke(app, command)
    assert "topic none is left out: the index has none of its relevant documents" in caplog.text
    output = json.loads(ran.stdout)
    assert [record["read"] for record in output["reviews"]] == [5, 5]
    assert output["reviews"][0]["reads_to_100"] is None
    assert output["mean"]["stop"] is None


def test_every_line_of_the_plot_ends_at_the_last_read() -> None:
    svg = recall_plot([WORKED], 0.9)
    (line,) = [e.get("d") for e in ET.fromstring(svg).iter() if e.get("stroke") == "#0b66c3"]
    assert line is not None
    assert line.count("L") == 3
    assert line.endswith(",24.0")
