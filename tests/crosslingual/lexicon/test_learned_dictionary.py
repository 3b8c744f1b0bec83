"""`linker bucc dictionary`: words learned from collections that share strings, and a refusal if they share none."""

import json
from pathlib import Path

import numpy as np

from tests.crosslingual.synthetic import word
from tests.helpers import linker

WORDS, TOPICS = 300, 60


def write(path: Path, language: str, alike: int, seed: int) -> Path:
    """Write 600 pages of two topics each, with ten words per topic; the first `alike` words are spelt identically."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).integers(WORDS, size=(TOPICS, 10))
    lines = []
    for page in range(600):
        drawn = rng.choice(topics[rng.choice(TOPICS, 2, replace=False)].ravel(), 30).tolist()
        text = " ".join(word(n, "source" if n < alike else language) for n in drawn)
        lines.append(json.dumps({"_id": f"{language}{page}", "text": text}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def collections(folder: Path, alike: int) -> list[Path]:
    return [
        write(folder / f"{name}.jsonl", name, alike, seed) for seed, name in enumerate(("source", "target"))
    ]


def test_a_dictionary_is_learned_from_words_that_are_spelt_alike(tmp_path: Path) -> None:
    files, out = collections(tmp_path, alike=100), tmp_path / "words.tsv"
    result = linker("bucc", "dictionary", *files, "--languages", "xx-yy", "--out", out, "--json")
    found = json.loads(result.stdout)
    pairs = [tuple(line.split("\t")) for line in out.read_text(encoding="utf-8").splitlines()]
    assert found["pairs"] == len(pairs) and found["agreement"] > 0.3
    known = {(word(n, "source"), word(n, "target")) for n in range(100, WORDS)}
    assert len(pairs) > 50
    assert sum(pair in known for pair in pairs) / len(pairs) > 0.6
    linked = linker(
        "link", *files, "--languages", "xx-yy", "--method", "dictionary", "--dictionary", out,
        "--run-name", "words", "--out", tmp_path / "words.run",
    )  # fmt: skip
    assert f"{len(pairs)} pairs, read as tsv" in linked.stderr


def test_collections_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    files, out = collections(tmp_path, alike=0), tmp_path / "words.tsv"
    result = linker("bucc", "dictionary", *files, "--languages", "xx-yy", "--out", out, check=1)
    assert "too little in common" in result.stderr and not out.exists()
