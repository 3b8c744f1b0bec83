"""The method `encoder` by passages, with a real sentence-transformers model given by its path."""

import json
from pathlib import Path

import numpy as np
import pytest

from linker import align
from linker.base.errors import InputError
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options, Passages
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import Task
from tests.crosslingual.tiny import numbered

WORDS = [f"word{i}" for i in range(4000)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static embedding of 4,000 words with random vectors, saved as sentence-transformers saves it."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(["[UNK]", *WORDS])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    weights = np.random.default_rng(0).normal(size=(len(WORDS) + 1, 128)).astype(np.float32)
    folder = tmp_path_factory.mktemp("model")
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu").save(
        str(folder)
    )
    return folder


def halves(count: int = 12) -> tuple[Pages, Pages]:
    """Pages of six passages; a source page shares only its last three with its target, which has three others."""
    rng = np.random.default_rng(1)

    def passage() -> str:
        return " ".join(rng.choice(WORDS, 16))

    shared = [[passage() for _ in range(3)] for _ in range(count)]
    source = ["\n".join([*(passage() for _ in range(3)), *part]) for part in shared]
    target = ["\n".join([*part, *(passage() for _ in range(3))]) for part in shared]
    return numbered(source, "s"), numbered(target[::-1], "t")


@pytest.mark.parametrize("passages", ["pooled", "max", "mean", "align"])
def test_pages_that_share_half_of_their_passages_are_linked(model: Path, passages: Passages) -> None:
    source, target = halves()
    task = Task(source, target, encoder=str(model), options=Options(passages=passages))
    ranked = link(task, "encoder").candidates
    right = (ranked.targets[:, 0] == np.arange(len(source))[::-1]).mean()
    assert right == 1 if passages != "pooled" else right > 0.5
    assert (np.diff(ranked.scores[:, :3], axis=1) < 0).all()


def test_empty_pages_are_not_linked_and_cosines_alone_can_be_used(model: Path) -> None:
    source, target = halves(5)
    empty = Pages((*source.ids, "none"), (*source.texts, " "), source.language)
    task = Task(empty, target, encoder=str(model), options=Options(margin=False, links="one-to-one"))
    assert link(task, "encoder").candidates.targets[:, 0].tolist() == [4, 3, 2, 1, 0, -1]


def test_a_path_that_is_no_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    source, target = halves(2)
    with pytest.raises(InputError, match=f"there is no model folder {tmp_path}/none"):
        link(Task(source, target, encoder=f"{tmp_path}/none"), "encoder")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=f"{tmp_path} is not a model"):
        link(Task(source, target, encoder=str(tmp_path)), "encoder")


def test_an_encoder_aligns_the_shared_passages(model: Path, tmp_path: Path) -> None:
    for name, pages in zip(("fr", "en"), halves(), strict=True):
        records = [{"_id": i, "text": text} for i, text in zip(pages.ids, pages.texts, strict=True)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "links.run").write_text("".join(f"s{i} X t{11 - i} 1 0.9 r\n" for i in range(12)))
    inputs = (tmp_path / "links.run", tmp_path / "fr.jsonl", tmp_path / "en.jsonl", tmp_path / "out.tsv")
    align(*inputs, encoder=str(model), unit="line", min_score=0.9)
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()[1:]]
    assert len(rows) == 36
    assert all(row[0] == row[1] for row in rows)
