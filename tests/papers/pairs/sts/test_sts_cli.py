"""`linker sts` and `linker search --rerank` as run by a user; the walk-through of docs/sts.md on tiny data."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from indexes.interface import Document, Filter, IndexesError
from linker.base.errors import InputError
from linker.engine import Engine
from linker.scoring.pairs.data import Pair
from linker.scoring.reranking import load_reranker
from tests.helpers import ROOT, WORDS, linker, make_engine, tiny_bert, write_json_lines
from tests.papers.pairs.sts.sts_helpers import graded_pairs, write_pairs


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"), WORDS)


class Overlap:
    """Share of the query's words that occur in the document."""

    def __init__(self) -> None:
        self.asked = 0

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        self.asked += len(pairs)
        return np.array(
            [len({*a.split()} & {*b.split()}) / len({*a.split()}) for a, b in pairs], dtype=np.float32
        )


DOCUMENTS = [
    Document("a", "rain rain rain", metadata={"lang": "en"}),
    Document("b", "rain floods the valley of the river and many other places", metadata={"lang": "en"}),
    Document("c", "volcano erupts", metadata={"lang": "de"}),
    Document("d", "rain volcano", metadata={"lang": "de"}),
]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return make_engine(tmp_path / "i", DOCUMENTS)


@pytest.mark.parametrize("mode", ["bm25", "dense", "hybrid"])
def test_every_mode_is_reranked_and_says_so(engine: Engine, mode: str) -> None:
    reranker, query = Overlap(), "rain floods valley"
    answer = engine.search(query, 2, mode=mode, reranker=reranker, depth=4)  # type: ignore[arg-type]  # a parameter
    first = engine.search(query, 4, mode=mode)  # type: ignore[arg-type]  # a parameter
    assert answer.reranked
    assert not first.reranked
    scores = Overlap().score([(query, engine.document(d).full_text) for d in first.hits[0].ids])
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:2]
    assert answer.hits[0].ids == tuple(first.hits[0].ids[i] for i in order)
    assert answer.hits[0].scores.tolist() == [scores[i] for i in order]
    assert answer.hits[0].ids[0] == "b"
    assert reranker.asked == len(first.hits[0])


def test_depth_weight_and_filter_hold(engine: Engine) -> None:
    first = engine.search("rain floods valley", 4, mode="bm25")
    reranker = Overlap()
    engine.search("rain floods valley", 1, mode="bm25", reranker=reranker, depth=2)
    assert reranker.asked == 2
    kept = engine.search("rain floods valley", 4, mode="bm25", reranker=Overlap(), weight=0.0)
    assert kept.hits[0].ids == first.hits[0].ids
    only = engine.search("rain", 4, mode="bm25", reranker=Overlap(), where=Filter.parse(["lang=de"]))
    assert only.hits[0].ids == ("d",)
    nothing = engine.search(["zebra", "rain"], 4, mode="bm25", reranker=Overlap())
    assert [len(h) for h in nothing.hits] == [0, 3]
    with pytest.raises(IndexesError, match="from 0 to 1"):
        engine.search("rain", reranker=Overlap(), weight=1.5)


def test_bad_input_is_one_line(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text1": "a", "score": 1}\n', encoding="utf-8")
    done = linker("sts", "train", tmp_path / "bad.jsonl", "--out", tmp_path / "m", check=1)
    assert re.search(r"error: .*bad.jsonl:1: the second sentence", done.stderr)
    pairs = write_pairs(tmp_path / "p.jsonl", graded_pairs(20))
    done = linker("sts", "train", pairs, "--backbone", "bert-of-nobody", "--out", tmp_path / "m", check=1)
    assert "Give a folder" in done.stderr
    done = linker("sts", "train", pairs, "--top", "3", "--out", tmp_path / "m", check=1)
    assert "is outside 0–3" in done.stderr
    linker("sts", "train", pairs, check=2)
    linker("sts", "train", pairs, "--out", tmp_path / "m", "--folds", "3", check=2)
    done = linker("sts", "evaluate", tmp_path, pairs, check=1)
    assert "linker sts train" in done.stderr
    with pytest.raises(InputError, match="linker sts train"):
        load_reranker(tmp_path)


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tiny: Path, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", graded_pairs(8))
    before = pairs.read_bytes()
    train = ("sts", "train", pairs, "--backbone", tiny, "--preset", "frozen", "--out")
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    for out in (tmp_path / "notes", tmp_path):
        done = linker(*train, out, check=1)
        assert "holds no scorer of pairs" in done.stderr
        assert "epoch" not in done.stderr
    # Fails before the model is opened: there is none.
    for command, model in (("sts", tmp_path / "none"), ("similarity", tmp_path / "none")):
        for out, says in ((pairs, "is also an input"), (tmp_path / "no" / "x", "there is no folder")):
            assert says in linker(command, "predict", model, pairs, "--out", out, check=1).stderr
    assert pairs.read_bytes() == before


def test_walk_through_of_the_page_runs(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_the_walk_through_s_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "sts.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    commands = [shlex.split(line) for line in block.splitlines() if line.startswith("linker ")]
    assert len(commands) == 10
    shown = [
        linker(*(str(tiny) if word == "minilm" else word for word in command[1:])) for command in commands
    ]
    assert "spearman" in shown[1].stdout
    predictions = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert [p["id"] for p in predictions] == [p.id for p in graded_pairs(12, seed=1)]
    assert all(0 <= p["score"] <= 1 for p in predictions)
    assert "added by back-translation" in shown[3].stderr
    assert re.search(r"train.jsonl +36 ", shown[4].stdout)
    assert len(shown[7].stdout.splitlines()) == 6
    assert "reranked" in shown[8].stderr
    assert "recip_rank" in shown[9].stdout
    (python,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(python, names)  # the page's own code
    assert getattr(names["answer"], "reranked")  # noqa: B009  # its type is not known here
    done = linker("search", "claims.index", "--text", WORDS[0], "--rerank", "reranker", "--json")
    assert json.loads(done.stdout)["reranked"] is True


def _write_the_walk_through_s_files(folder: Path) -> None:
    train, test = graded_pairs(36), graded_pairs(12, seed=1)
    write_pairs(folder / "train.jsonl", train)
    write_pairs(folder / "test.jsonl", test)
    with (folder / "translations.jsonl").open("w", encoding="utf-8") as file:
        for text in {t for p in train for t in p.texts}:
            back = " ".join(reversed(text.split()))
            for source, target, a, b in (("en", "fr", text, f"le {text}"), ("fr", "en", f"le {text}", back)):
                row = {"source": source, "target": target, "text": a, "translation": b}
                file.write(json.dumps(row) + "\n")
    links = ["text1\ttext2\tscore", *(f"{p.first}\t{p.second}\t{int(_gold(p) > 2)}" for p in train)]
    (folder / "links.tsv").write_text("\n".join(links) + "\n", encoding="utf-8")
    claims = [{"_id": p.id, "text": f"how {p.second}"} for p in test[:6]]
    write_json_lines(folder / "claims.jsonl", claims)
    (folder / "queries.tsv").write_text("".join(f"q{p.id}\t{p.first}\n" for p in test[3:6]), encoding="utf-8")
    (folder / "qrels.tsv").write_text("".join(f"q{p.id} 0 {p.id} 1\n" for p in test[3:6]), encoding="utf-8")


def _gold(pair: Pair) -> float:
    assert pair.gold is not None
    return pair.gold
