"""Calibrating an index, searching with P(link) and with promises; mismatches are refused or reported."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from indexes.interface import DamagedError, Document
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.corpora import Query
from linker.engine.engine import Engine
from linker.scoring.probability import folder
from linker.scoring.probability.calibration import Calibration
from tests.helpers import WORDS, HashEncoder, linker, write_json_lines
from tests.scoring.ranking.synthetic import documents

QUERIES = 400


def asked() -> tuple[list[Query], dict[str, dict[str, float]]]:
    """Return queries of one to nine words from a document, so that some find it and some do not, and judgements.

    Every tenth query has words of its own and no relevant document.
    """
    rng = random.Random(3)
    queries, judged = [], {}
    for number in range(QUERIES):
        document = documents()[number % len(documents())]
        words = rng.sample(document.text.lower().replace(".", "").split(), 1 + 2 * (number % 5))
        if number % 10 == 9:
            words = rng.choices(WORDS, k=4)
        queries.append(Query(f"q{number}", " ".join(words)))
        judged[f"q{number}"] = {document.id: float(number % 10 != 9)}
    return queries, judged


def make(directory: Path, encoder: HashEncoder | None = None) -> Path:
    record = EncoderRecord("hash", encoder.fingerprint, encoder.dim) if encoder else None
    with Writer.create(directory, Manifest("flat" if encoder else "none", encoder=record)) as writer:
        writer.add(documents(), encoder.encode([d.text for d in documents()]) if encoder else None)
        writer.commit()
    return directory


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("calibrate")
    make(root / "plain")
    queries, judged = asked()
    write_json_lines(root / "queries.jsonl", ({"_id": q.id, "text": q.text} for q in queries))
    lines = [f"{q} 0 {d} {int(grade)}\n" for q, docs in judged.items() for d, grade in docs.items()]
    (root / "qrels").write_text("".join(lines))
    shutil.copytree(root / "plain", root / "index")
    linker("calibrate", root / "index", *judgements(root))
    return root


def judgements(root: Path) -> tuple[str | Path, ...]:
    return ("--queries", root / "queries.jsonl", "--qrels", root / "qrels")


def stored(directory: Path) -> Calibration:
    calibration = Engine(directory).calibration
    assert calibration is not None
    return calibration


def test_the_same_calibration_can_be_stored_again(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "plain", tmp_path / "index")
    engine = Engine(tmp_path / "index")
    folder.save(stored(made / "index"), tmp_path / "calibration")
    for _ in range(2):
        engine.store_calibration(tmp_path / "calibration")
    assert engine.calibration is not None
    assert "as they were written" in linker("index", "verify", tmp_path / "index").stdout


def test_calibrating_tells_how_good_it_is(made: Path, tmp_path: Path) -> None:
    arguments = ("calibrate", made / "plain", *judgements(made), "--out", tmp_path / "out")
    told = json.loads(linker(*arguments, "--json").stdout)
    assert told["queries"] == QUERIES and told["held"] == QUERIES / 2
    assert told["brier_gain"] > 0.2 and told["auc"] > 0.7
    assert [p["precision"] for p in told["promises"]] == [0.8, 0.9, 0.95]
    assert json.loads(linker(*arguments, "--json").stdout) == told, "the same seed gave another calibration"
    other = json.loads(linker(*arguments, "--seed", "1", "--json").stdout)
    assert other["calibration"] != told["calibration"]
    text = linker(*arguments).stdout
    assert told["calibration"] in text and "calibration error" in text and "Brier" in text
    assert Engine(made / "plain").calibration is None, "--out leaves the index as it is"
    none = linker(*arguments, "--dev-share", "0").stdout
    assert "no query was held out" in none


def test_searches_show_probabilities(made: Path) -> None:
    queries, judged = asked()
    engine = Engine(made / "index")
    answer = engine.search([q.text for q in queries], 5)
    assert answer.probabilities is not None and answer.calibration == stored(made / "index").fingerprint
    right = np.array([judged[q.id].get(h.ids[0], 0) > 0 for q, h in zip(queries, answer.hits, strict=True)])
    said = np.array([p[0] for p in answer.probabilities])
    assert all(len(p) == len(h) for p, h in zip(answer.probabilities, answer.hits, strict=True))
    assert abs(said.mean() - right.mean()) < 0.05 and said[right].mean() > said[~right].mean() + 0.2
    text = queries[4].text
    shown = json.loads(linker("search", made / "index", "--text", text, "--json").stdout)
    assert shown["calibration"] == answer.calibration
    np.testing.assert_allclose([h["probability"] for h in shown["hits"]][:5], answer.probabilities[4])
    plain = linker("search", made / "index", "--text", text)
    assert f"{answer.probabilities[4][0]:.3f}" in plain.stdout and answer.calibration in plain.stderr
    run = linker("search", made / "index", "--queries", made / "queries.jsonl", "-k", "5", "--json").stdout
    lines = [json.loads(line) for line in run.splitlines()]
    np.testing.assert_allclose(lines[4]["probabilities"], answer.probabilities[4])
    # The same numbers for a result computed without them, and for each text alone.
    bare = engine.search([q.text for q in queries], 5, probabilities=False)
    assert bare.probabilities is None
    for a, b in zip(engine.probabilities([q.text for q in queries], bare), answer.probabilities, strict=True):
        np.testing.assert_allclose(a, b)
    alone = engine.search(text, 5).probabilities
    assert alone is not None
    np.testing.assert_allclose(alone[0], answer.probabilities[4])
    phrases = engine.search([text, f'"{text.split()[0]}"'], 5, phrases=True)
    assert phrases.probabilities is not None and list(map(len, phrases.probabilities)) == list(
        map(len, phrases.hits)
    )


def test_without_a_calibration_nothing_changes(made: Path) -> None:
    shown = json.loads(linker("search", made / "plain", "--text", WORDS[0], "--json").stdout)
    assert "calibration" not in shown and all("probability" not in hit for hit in shown["hits"])
    for option in (("--threshold", "0.5"), ("--precision", "0.5")):
        failed = linker("search", made / "plain", "--text", WORDS[0], *option, check=1)
        assert "linker calibrate" in failed.stderr
    with pytest.raises(InputError, match="linker calibrate"):
        Engine(made / "plain").probabilities(["x"], Engine(made / "plain").search("x"))


def test_thresholds(made: Path) -> None:
    arguments = ("search", made / "index", "--queries", made / "queries.jsonl", "-k", "5", "--json")
    everything = [json.loads(line) for line in linker(*arguments).stdout.splitlines()]
    kept = [json.loads(line) for line in linker(*arguments, "--threshold", "0.5").stdout.splitlines()]
    for before, after in zip(everything, kept, strict=True):
        pairs = zip(before["ids"], before["probabilities"], strict=True)
        assert after["ids"] == [id_ for id_, p in pairs if p >= 0.5]
    scored = [json.loads(line) for line in linker(*arguments, "--score", "3").stdout.splitlines()]
    for before, after in zip(everything, scored, strict=True):
        assert after["scores"] == [s for s in before["scores"] if s >= 3]
    assert linker(*arguments, "--threshold", "7", check=2).returncode == 2, "a threshold is a probability"


def test_a_promised_precision(made: Path) -> None:
    arguments = ("search", made / "index", "--queries", made / "queries.jsonl", "--json", "--precision")
    promise = stored(made / "index").promise(0.5)
    assert promise is not None
    done = linker(*arguments, "0.5")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert "95% confidence" in done.stderr and f"{promise.links} held-out links" in done.stderr
    assert {len(line["ids"]) for line in lines} == {0, 1}
    everything = linker("search", made / "index", "--queries", made / "queries.jsonl", "--json").stdout
    for line, before in zip(lines, map(json.loads, everything.splitlines()), strict=True):
        likely = bool(before["ids"]) and before["probabilities"][0] >= promise.threshold
        assert line["ids"] == before["ids"][:1] * likely
    nothing = linker(*arguments, "0.999")
    assert "no threshold is certified" in nothing.stderr
    assert not any(json.loads(line)["ids"] for line in nothing.stdout.splitlines())
    for option in (("--mode", "bm25"), ("--k1", "2")):
        assert "cannot be combined with --mode" in linker(*arguments, "0.5", *option, check=2).stderr


def test_another_encoder_or_analysis_is_refused(made: Path, tmp_path: Path) -> None:
    queries, judged = asked()
    for name in ("one", "two"):
        make(tmp_path / name, HashEncoder(name=name))
    one, two = (Engine(tmp_path / name, encoder=HashEncoder(name=name)) for name in ("one", "two"))
    folder.save(one.calibrate(queries, judged), tmp_path / "calibration")
    assert one.calibrate(queries, judged).names[-1] == "dense_rank"
    with pytest.raises(InputError, match="another encoder"):
        two.store_calibration(tmp_path / "calibration")
    one.store_calibration(tmp_path / "calibration")
    assert one.search("banel").probabilities is not None
    shutil.copytree(made / "index", tmp_path / "tuned")
    with Writer.open(tmp_path / "tuned") as writer:
        writer.commit(bm25=writer.manifest.bm25.changed(2.5, None, None))
    answer = Engine(tmp_path / "tuned").search("banel")
    assert answer.probabilities is None and "calibrate this index again" in answer.notes[0]
    assert "warning: no probabilities" in linker("search", tmp_path / "tuned", "--text", "banel").stderr
    for option in ("--threshold", "--precision"):
        failed = linker("search", tmp_path / "tuned", "--text", "banel", option, "0.5", check=1)
        assert "another analysis" in failed.stderr


def test_changed_documents_and_strange_queries_are_told(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "index", tmp_path / "index")
    engine = Engine(tmp_path / "index")
    queries = [q.text for q in asked()[0]]
    assert engine.search(queries).notes == ()
    strange = engine.search([" ".join(documents()[n].text.split()[:40]) for n in range(40)])
    assert len(strange.notes) == 1 and "look unlike" in strange.notes[0] and strange.probabilities
    engine.add([Document("new", "banel deras")])
    assert "161 documents, 160 then" in engine.search("banel").notes[0]
    engine.delete(["new"])
    assert engine.calibration is not None, "it stays"
    linker("index", "compact", tmp_path / "index")
    assert Engine(tmp_path / "index").search("banel").probabilities is not None
    assert "as they were written" in linker("index", "verify", tmp_path / "index").stdout


def test_it_is_replaced_and_checked_like_every_file(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "index", tmp_path / "index")
    before = stored(tmp_path / "index").fingerprint
    linker("calibrate", tmp_path / "index", *judgements(made), "--seed", "9")
    assert stored(tmp_path / "index").fingerprint != before
    assert len(list((tmp_path / "index" / "calibration").iterdir())) == 1
    file = next((tmp_path / "index" / "calibration").rglob("*.json"))
    file.write_text(file.read_text().replace("0.", "1.", 1))
    with pytest.raises(DamagedError, match=r"calibration\.json"):
        Engine(tmp_path / "index")


def test_too_few_judged_hits_are_refused(made: Path, tmp_path: Path) -> None:
    (tmp_path / "few").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    failed = linker(
        "calibrate", made / "plain", "--queries", made / "queries.jsonl", "--qrels", tmp_path / "few", check=1
    )
    assert "need 20 of each" in failed.stderr
    (tmp_path / "none").write_text("other 0 d1 1\n")
    failed = linker(
        "calibrate",
        made / "plain",
        "--queries",
        made / "queries.jsonl",
        "--qrels",
        tmp_path / "none",
        check=1,
    )
    assert "no query is judged" in failed.stderr


def test_only_judged_documents_count_where_judgements_are_incomplete(made: Path) -> None:
    queries, judged = asked()
    engine = Engine(made / "plain")
    answer = engine.search([q.text for q in queries], 3)
    read = {
        q.id: {i: judged[q.id].get(i, 0.0) for i in (*h.ids[:2], "d9", "gone")}
        for q, h in zip(queries, answer.hits, strict=True)
    }
    partial = engine.calibrate(queries, read, complete=False)
    assert partial.about["fitted"] <= 3 * QUERIES / 2
    whole = engine.calibrate(queries, judged)
    assert whole.about["fitted"] > partial.about["fitted"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "linker-calibration-9"), ("names", ["bm25", "bm25"]), ("names", ["unheard"]),
        ("weights", [1.0]), ("weights", ["x"]), ("scale", [0.0] * 6), ("held", [2.0]), ("right", []),
        ("seen", {}), ("source", {}), ("about", 3), ("more", 1),
    ],
)  # fmt: skip
def test_a_damaged_calibration_is_refused(key: str, value: object, made: Path, tmp_path: Path) -> None:
    path = tmp_path / folder.FILE
    shutil.copy(next((made / "index" / "calibration").rglob("*.json")), path)
    folder.load(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(InputError, match="calibrate again"):
        folder.load(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="--out"):
        folder.load(tmp_path)
