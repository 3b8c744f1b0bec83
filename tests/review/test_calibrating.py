"""A calibration from a review's judgements: only those that agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from indexes.store.records import Manifest
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.cli.commands.calibrating import agreed, calibrated
from linker.engine.engine import Engine
from linker.review.interface import Judgement, Seed
from linker.review.ledger import Ledger
from tests.helpers import linker
from tests.scoring.ranking.synthetic import documents, judged_queries


def test_only_what_reviewers_agree_on_counts() -> None:
    said = [
        Judgement("s", "a", "relevant", "ana"), Judgement("s", "a", "relevant", "ben"),
        Judgement("s", "b", "relevant", "ana"), Judgement("s", "b", "not", "ben"),
        Judgement("s", "c", "maybe"), Judgement("s", "d", "skip"), Judgement("t", "a", "not"),
    ]  # fmt: skip
    assert agreed(said) == {"s": {"a": 1.0}, "t": {"a": 0.0}}


def test_a_review_calibrates_its_index(tmp_path: Path) -> None:
    index, file = tmp_path / "index", tmp_path / "review.sqlite"
    with Writer.create(index, Manifest()) as writer:
        writer.add(documents(), None)
        writer.commit()
    engine, ledger = Engine(index), Ledger(file)
    queries, judged = judged_queries()
    with pytest.raises(InputError, match="no query is judged"):
        calibrated(engine, ledger)
    ledger.put_seeds([Seed(q.id, q.text) for q in queries])
    answer = engine.search([q.text for q in queries], 3)
    ledger.add_all(
        Judgement(q.id, id_, "relevant" if id_ in judged[q.id] else "not")
        for q, hits in zip(queries, answer.hits, strict=True)
        for id_ in hits.ids
    )
    assert calibrated(engine, ledger).about["fitted"] == 3 * len(queries) / 2
    told = json.loads(linker("calibrate", index, "--ledger", file, "--json").stdout)
    assert told["queries"] == len(queries) and told["auc"] > 0.7
    assert Engine(index).search(queries[0].text).probabilities is not None
    missing = linker("calibrate", index, "--ledger", tmp_path / "none.sqlite", check=1)
    assert "none.sqlite" in missing.stderr and not (tmp_path / "none.sqlite").exists()
    assert "either" in linker("calibrate", index, check=2).stderr
