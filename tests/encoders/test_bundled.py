"""The model that comes with linker: `load_encoder("star")`."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from linker.encoders.configs import BagConfig
from linker.encoders.folder import save
from linker.encoders.installed import is_there
from linker.encoders.loading import BUNDLED, load_encoder
from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer

QUESTION = "Interest rates go up again"
STORIES = [
    "The central bank has raised its key lending rate by a quarter of a point, the third increase this year.",
    "The striker scored twice in the final minutes and took the cup home.",
    "A recipe for soup: cut the onions, add water and salt, and let it boil for an hour.",
]


def test_the_star_finds_what_shares_no_word_with_the_question() -> None:
    encoder = load_encoder("star")
    question, *stories = encoder.encode([QUESTION, *STORIES])
    assert int(np.argmax(np.stack(stories) @ question)) == 0
    assert np.linalg.norm(stories[0]) == pytest.approx(1, abs=1e-5)
    assert encoder.dim == 128
    assert is_there("star")


def test_the_star_has_learned_inputs_and_is_small() -> None:
    encoder = load_encoder("star")
    assert isinstance(encoder, TextEncoder)
    star = encoder.module
    assert isinstance(star, StarTransformer)
    assert star.key_inputs is not None
    assert (star.key_inputs.weight[0] > 0.1).all(), "rare tokens gain weight"
    assert (star.key_inputs.weight[2] < 0).all(), "late ones lose some"
    assert sum(path.stat().st_size for path in BUNDLED["star"].iterdir()) <= 20_000_000


def test_a_folder_of_the_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = WordTokenizer(Vocabulary.build(STORIES, min_count=1, max_size=50))
    save(TextEncoder.new(BagConfig(dim=3), words), tmp_path / "star")
    assert load_encoder("star").dim == 3
