"""Runs and judgements from other tools, compared with those tools; and unreadable files."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import Qrel, ScoredDoc

from indexes.interface import Hits
from linker.base.errors import InputError
from linker.evaluation import evaluate
from linker.evaluation.formats import FORMATS, RunFormat, format_of, load_qrels, load_run, write_run_as

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2, "é": 1}}
RUN = {"q1": {"b": 2.5, "a": 1.25}, "q2": {"c": 3.0, "x": -1.0}}
ROWS = [(topic, list(scores), list(scores.values())) for topic, scores in RUN.items()]
NAMES = {
    "trec": "run.txt", "ranx": "run.json", "pytrec_eval": "p.json", "parquet": "run.parquet",
    "jsonl": "run.jsonl",
}  # fmt: skip


def plain(entries: Any) -> dict[str, dict[str, float]]:
    return {topic: dict(documents) for topic, documents in entries.items()}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_formats_are_read_back_and_known_by_content(tmp_path: Path, kind: RunFormat, ending: str) -> None:
    write_run_as(tmp_path / f"{NAMES[kind]}{ending}", ROWS, kind, "mine")
    entries = load_run(tmp_path / f"{NAMES[kind]}{ending}")
    assert plain(entries) == RUN
    assert entries.name == ("mine" if kind == "trec" else Path(NAMES[kind]).stem)
    unnamed = tmp_path / "x"
    write_run_as(unnamed, ROWS, kind)
    assert plain(load_run(unnamed)) == RUN


def test_the_name_of_a_file_says_its_format() -> None:
    names = ["r.json", "r.json.gz", "r.JSONL", "r.parquet", "r.parq", "r.txt", "r.trec", "r"]
    assert [format_of(Path(n)) for n in names] == [
        "ranx", "ranx", "jsonl", "parquet", "parquet", *["trec"] * 3,
    ]  # fmt: skip


RANX = """
import json, orjson, pandas, ranx, sys
dumps = orjson.dumps
orjson.dumps = lambda value, option: dumps(value, option=option | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
folder, run, qrels = sys.argv[1], *map(json.loads, sys.argv[2:])
read = [ranx.Run.from_file(f"{folder}/run.{kind}").to_dict() for kind in ("json", "trec")]
# ranx refuses the strings of pandas 3, its own too
frame = pandas.read_parquet(f"{folder}/run.parquet").astype({"q_id": object, "doc_id": object})
assert read + [ranx.Run.from_df(frame).to_dict()] == [run] * 3
for kind in ("json", "trec", "parquet"):
    ranx.Run.from_dict(run).save(f"{folder}/theirs.{kind}")
    ranx.Qrels.from_dict(qrels).save(f"{folder}/qrels.{kind}")
"""


def test_ranx_and_this_package_read_each_other(tmp_path: Path) -> None:
    for kind in ("json", "trec", "parquet"):
        write_run_as(tmp_path / f"run.{kind}", ROWS)
    command = [sys.executable, "-W", "ignore", "-c", RANX, str(tmp_path), json.dumps(RUN), json.dumps(QRELS)]
    # Without Numba's compiler, which takes most of a minute; then keys are of NumPy's class of strings.
    subprocess.run(command, check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})
    for kind in ("json", "trec", "parquet"):
        assert plain(load_run(tmp_path / f"theirs.{kind}")) == RUN
        assert plain(load_qrels(tmp_path / f"qrels.{kind}")) == QRELS


def test_pytrec_eval_takes_what_is_written_for_it(tmp_path: Path) -> None:
    write_run_as(tmp_path / "run.json", ROWS, "pytrec_eval")
    theirs = pytrec_eval.RelevanceEvaluator(QRELS, ["map"]).evaluate(
        json.loads((tmp_path / "run.json").read_bytes())
    )
    (tmp_path / "qrels.json").write_text(json.dumps(QRELS))
    mine = evaluate(tmp_path / "qrels.json", tmp_path / "run.json", "map")
    assert {t: mine.topic(t)["map"] for t in theirs} == {t: v["map"] for t, v in theirs.items()}


ids = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Z")), min_size=1, max_size=5)
scores = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(max_examples=40)
@given(
    st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1), min_size=1),
    st.sampled_from(["ranx", "jsonl", "parquet"]),
)
def test_any_run_survives(tmp_path_factory: pytest.TempPathFactory, run: Any, kind: RunFormat) -> None:
    path = tmp_path_factory.mktemp("any") / "run"
    write_run_as(path, [(topic, list(d), list(d.values())) for topic, d in run.items()], kind)
    assert plain(load_run(path)) == run


@given(
    st.binary(max_size=60),
    st.sampled_from([b"", b"{", b'{"q":{', b"PAR1", b'{"query":"1","ids":["a"],"scores":', b"\xef\xbb\xbf{"]),
)
def test_any_bytes_are_a_run_or_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "run"
    path.write_bytes(start + data)
    try:
        load_run(path)
    except InputError as e:
        assert str(path) in str(e)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"q": {"a": 1, "a": 2}}', "'a' occurs twice"),
        ('{"q": {"a": 1}, "q": {"b": 2}}', "'q' occurs twice"),
        ('{"q": {"a": "1"}}', "document 'a': '1' is not a number"),
        ('{"q": {"a": true}}', "not a number"),
        ('{"q": {"a": NaN}}', "the value nan of document 'a' is not a score"),
        ('{"q": ["a"]}', "topic 'q' is not an object"),
        ('[{"q": 1}]', "not an object"),
        ('{"q": {"a"', "not JSON"),
        ("{}", "it is empty"),
        ('{"query": "q", "ids": ["a"], "scores": []}', "line 1: query 'q'"),
        ('{"query": "q", "ids": ["a"], "scores": [1]}\n{"query": 1}', "line 2: expected an object with query"),
    ],
)  # fmt: skip
def test_malformed_json_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=reason) as error:
        load_run(tmp_path / "r.json")
    assert str(tmp_path / "r.json") in str(error.value)


def test_values_of_python() -> None:
    expected = dict(evaluate(QRELS, RUN, "map MRR"))
    qrels = [Qrel(t, d, r) for t, judged in QRELS.items() for d, r in judged.items()]
    run = [ScoredDoc(t, d, s) for t, listed in RUN.items() for d, s in listed.items()]
    assert dict(evaluate(qrels, run, "map MRR")) == expected
    assert dict(evaluate([q[:3] for q in qrels], iter([tuple(r) for r in run]), "map MRR")) == expected
    hits = {t: Hits(tuple(d), np.array(list(d.values()), np.float32)) for t, d in RUN.items()}
    assert dict(evaluate(QRELS, hits, "map MRR")) == expected
    assert dict(evaluate(QRELS, {t: list(d) for t, d in RUN.items()}, "map MRR")) == expected
    for wrong, reason in (
        ({"q1": ["a", "a"]}, "twice"),
        ([("q1", "a")], "not a triple"),
        ([("q1", "a", 1.0)] * 2, "twice"),
    ):
        with pytest.raises(InputError, match=reason):
            evaluate(QRELS, wrong)


def test_pipes_and_stdin_of_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in FORMATS:
        write_run_as(tmp_path / "run", ROWS, kind)
        os.mkfifo(tmp_path / f"pipe{kind}")
        data = gzip.compress((tmp_path / "run").read_bytes())
        writer = threading.Thread(target=(tmp_path / f"pipe{kind}").write_bytes, args=(data,))
        writer.start()
        assert plain(load_run(tmp_path / f"pipe{kind}")) == RUN
        writer.join()
        with (tmp_path / "run").open(encoding="latin-1") as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert plain(load_run("-")) == RUN


def test_stdout_gets_all(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    write_run_as(Path("-"), ROWS, "ranx")
    assert json.loads(capfdbinary.readouterr().out) == RUN
    with pytest.raises(InputError, match="the run: topic 'q1' is given twice"):
        write_run_as(Path("-"), [*ROWS, ROWS[0]], "jsonl")
    assert not capfdbinary.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(InputError, match="name a file with `out`"):
        write_run_as(Path("-"), ROWS, "parquet")


def test_a_beir_folder_has_judgements(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    with pytest.raises(InputError, match=r"expected qrels/test\.tsv"):
        load_qrels(tmp_path)
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    assert plain(load_qrels(tmp_path)) == {"q1": {"a": 1}}
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tb\t1\n")
    with pytest.raises(InputError, match=r"no test split: name one of .*dev\.tsv"):
        load_qrels(tmp_path)
    with gzip.open(tmp_path / "qrels" / "test.tsv.gz", "wt") as file:
        file.write("query-id\tcorpus-id\tscore\nq1\tc\t1\n")
    assert plain(load_qrels(tmp_path)) == {"q1": {"c": 1}}


def test_parquet_with_other_columns_and_damage(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"query_id": ["q1", "q1"], "doc_id": ["a", "b"], "relevance": [1, 0]}), tmp_path / "q"
    )
    assert plain(load_qrels(tmp_path / "q")) == {"q1": {"a": 1, "b": 0}}
    with pytest.raises(InputError, match="there is no value column"):
        load_run(tmp_path / "q")
    file = io.BytesIO()
    pq.write_table(pa.table({"q_id": ["q"], "doc_id": ["a"], "score": [1.0]}), file)
    (tmp_path / "cut").write_bytes(file.getvalue()[:-20])
    with pytest.raises(InputError, match="cut: not a Parquet file"):
        load_run(tmp_path / "cut")
