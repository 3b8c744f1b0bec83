"""Tokens, vocabularies and word vectors."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.errors import BackendUnavailableError, MissingExtraError, importing
from linker.base.errors import InputError
from linker.encoders.tokens import (
    PAD,
    UNK,
    PieceTokenizer,
    Tokenizer,
    Vocabulary,
    WordTokenizer,
    WordVectors,
    load_tokenizer,
    load_word_vectors,
    tokenize,
    train_word_vectors,
)

TEXTS = ["the cat sat", "the dog sat on the mat", "a cat"]


# --- words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n…!? - ", []),
        ("The Senate’s vote: don't", ["the", "senate's", "vote", "don't"]),
        ("'quoted' words'", ["quoted", "words"]),
        ("@jack_x says #MeToo!", ["@jack_x", "says", "#metoo"]),
        ("1,650 to 8.30, $1.13bn (£600m) in 2004.", ["1,650", "to", "8.30", "1.13bn", "600m", "in", "2004"]),
        ("the U.S. and the EU.", ["the", "u.s.", "and", "the", "eu"]),
        ("Covid-19 foo_bar a/b", ["covid", "19", "foo_bar", "a", "b"]),
        ("see https://t.co/X?y=1#z or WWW.BBC.co.uk, pic.twitter.com/0e", ["see", "<url>", "or", "<url>", "<url>"]),
        ("北京2008 カナ x", ["北", "京", "2008", "カ", "ナ", "x"]),
        ("हिन्दी में, ไทยนี้ مَرحبا", ["हिन्दी", "में", "ไทยนี้", "مَرحبا"]),
        ("e\u0301te\u0301 ＡＢＣ ﬁn", ["été", "abc", "fin"]),
        ("so 😀👍 nice ☀", ["so", "😀", "👍", "nice", "☀"]),
        ("lone \ud800 half", ["lone", "half"]),
    ],
)  # fmt: skip
def test_tokenize(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_tokens_hold_no_white_space_and_do_not_depend_on_what_surrounds_the_text(text: str) -> None:
    tokens = tokenize(text)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    assert tokenize(f"  {text}\n") == tokens
    assert tokenize(f"{text} and {text}") == [*tokens, "and", *tokens]


# --- vocabulary -------------------------------------------------------------------------------------------------


def test_a_vocabulary_is_ordered_by_count_then_token() -> None:
    vocabulary = Vocabulary.build(TEXTS)
    assert vocabulary.tokens == ("<pad>", "<unk>", "the", "cat", "sat", "a", "dog", "mat", "on")
    assert Vocabulary.build(reversed(TEXTS)) == vocabulary
    assert Vocabulary.build(TEXTS, min_count=2).tokens[2:] == ("the", "cat", "sat")
    assert Vocabulary.build(TEXTS, max_size=4).tokens[2:] == ("the", "cat")
    assert Vocabulary.build(TEXTS, max_size=1) == Vocabulary()
    assert (len(vocabulary), list(vocabulary)[:2]) == (9, ["<pad>", "<unk>"])


def test_what_looks_like_padding_is_an_unknown_word() -> None:
    vocabulary = Vocabulary.build(TEXTS)
    assert vocabulary.encode(["<pad>", "<unk>", "cat"]) == [UNK, UNK, 3]


def test_words_to_ids_and_back_from_a_file(tmp_path: Path) -> None:
    tokenizer = WordTokenizer(Vocabulary.build(TEXTS))
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.encode_batch(["The mat, a hat <pad> <unk>", "", "cat " * 9], 5) == [
        [2, 7, 5, UNK, UNK],
        [],
        [3] * 5,
    ]
    path = tmp_path / "words.json"
    path.write_bytes(tokenizer.to_bytes())
    assert load_tokenizer(path) == tokenizer
    assert path.read_bytes() == tokenizer.to_bytes()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=6))
def test_padding_never_comes_out_of_a_text(texts: list[str]) -> None:
    tokenizer = WordTokenizer(Vocabulary.build(texts))
    ids = tokenizer.encode_batch([*texts, "<pad>"], 50)
    assert all(UNK <= i < tokenizer.size for row in ids for i in row)
    assert all(UNK not in row for row in ids[:-1])  # built from the same texts


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b'{"type": "words"}', b'{"type": "words", "tokens": ["a"]}',
                b'{"type": "words", "tokens": [1]}', b'{"type": "words", "tokens": ["<pad>", "<unk>", "a", "a"]}',
                b'{"a": 1}', b"\xff"],
)  # fmt: skip
def test_a_file_that_is_no_tokenizer(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"tokenizer.json"):
        load_tokenizer(path)


def test_a_tokenizer_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        load_tokenizer(tmp_path / "none.json")


# --- word pieces ------------------------------------------------------------------------------------------------

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "##s", "sat", "pad", "[", "]"]


def pieces_json(vocabulary: list[str]) -> str:
    special = [
        {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}
        for i, t in enumerate(vocabulary) if t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    ]  # fmt: skip
    ends = [{"SpecialToken": {"id": t, "type_id": 0}} for t in ("[CLS]", "[SEP]")]
    single = [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]]
    post = {"type": "TemplateProcessing", "single": single, "pair": [],
            "special_tokens": {t: {"id": t, "ids": [2], "tokens": [t]} for t in ("[CLS]", "[SEP]")}}  # fmt: skip
    padding = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
               "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    return json.dumps({
        "version": "1.0", "truncation": truncation, "padding": padding, "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": post, "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(vocabulary)}},
    })  # fmt: skip


def test_word_pieces_without_padding_cutting_or_special_tokens(tmp_path: Path) -> None:
    tokenizer = PieceTokenizer(pieces_json(PIECES))
    assert isinstance(tokenizer, Tokenizer)
    assert (tokenizer.size, tokenizer.unknown) == (10, 1)
    assert tokenizer.encode_batch(["Cats sat", "", "dog cat sat", "[PAD]", "cat \ud800"], 3) == [
        [4, 5, 6], [], [1, 4, 6], [8, 7, 9], [4, 1],
    ]  # fmt: skip
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tokenizer.to_bytes())
    again = load_tokenizer(path)
    assert again.encode_batch(["cats"], 9) == [[4, 5]]
    assert again.to_bytes() == tokenizer.to_bytes()


def test_tokens_stand_behind_the_ids() -> None:
    words = WordTokenizer(Vocabulary.of(["cat"]))
    pieces = PieceTokenizer(pieces_json(PIECES))
    for tokenizer in (words, pieces):
        for cut in (0, 2, 9):
            ids = tokenizer.encode_batch(["Cat, dog cat"], cut)[0]
            assert len(tokenizer.tokens("Cat, dog cat", cut)) == len(ids)
    assert words.tokens("Cat, dog cat", 2) == ["cat", "dog"]  # an unknown word keeps its name
    assert pieces.tokens("cat", 9) == ["cat"]


def test_word_pieces_need_padding_at_zero() -> None:
    with pytest.raises(InputError, match="must have the id 0"):
        PieceTokenizer(pieces_json(["[UNK]", "[PAD]", "[CLS]", "[SEP]", "cat"]))


def test_word_pieces_without_the_unknown_token_name_their_file() -> None:
    pieces = PieceTokenizer(pieces_json(["[PAD]", "[CLS]", "[SEP]", "cat"]), "x/tokenizer.json")
    with pytest.raises(InputError, match=r"x/tokenizer\.json cannot encode"):
        pieces.encode_batch(["dog"], 9)


def test_missing_extras_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("tokenizers", "gensim", "gensim.models", "safetensors"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="'pretrained'"):
        PieceTokenizer("{}")
    with pytest.raises(MissingExtraError, match="'vectors'"):
        train_word_vectors(TEXTS)


def test_a_package_that_is_there_but_cannot_be_loaded_is_no_missing_extra() -> None:
    failures = [
        ModuleNotFoundError("No module named 'numpy._C'", name="numpy._C"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
    ]
    for failure in failures:
        with (
            pytest.raises(BackendUnavailableError, match="memory is short") as caught,
            importing("x", "train"),
        ):
            raise failure
        assert not isinstance(caught.value, MissingExtraError)
    with pytest.raises(MissingExtraError, match="'train'"), importing("x", "train"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401  # that is the point


# --- word vectors -----------------------------------------------------------------------------------------------

GLOVE = b"the 1 2 3\ncat 4 5 6\nfoo\xc2\xa0bar 7 8 9\n. . 1 1 1\ncat 0 0 0\n"


def write(tmp_path: Path, content: bytes, name: str = "vectors.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def vector(vectors: WordVectors, word: str) -> list[float]:
    assert isinstance(vectors.tokenizer, WordTokenizer)
    found: list[float] = vectors.matrix[vectors.tokenizer.vocabulary.ids[word]].tolist()
    return found


@pytest.mark.parametrize("header", [b"", b"5 3\n", b"5 3 \r\n"])
def test_word_vectors_of_text_files(tmp_path: Path, header: bytes) -> None:
    vectors = load_word_vectors(write(tmp_path, header + GLOVE))
    assert isinstance(vectors.tokenizer, WordTokenizer)
    assert vectors.tokenizer.vocabulary.tokens[2:] == ("the", "cat", "foo\xa0bar", ". .")
    assert vectors.matrix.shape == (6, 3)
    assert vectors.matrix.dtype == np.float32
    assert vector(vectors, "cat") == [4, 5, 6]  # the first of two
    assert vector(vectors, "foo\xa0bar") == [7, 8, 9]
    assert not vectors.matrix[PAD].any()
    assert vectors.matrix[UNK].any()
    assert vectors.known.tolist() == [False, False, True, True, True, True]


def test_word_vectors_for_a_vocabulary(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of(["dog", "the", "cat"])
    path = tmp_path / "v.vec.gz"
    # fastText ends its lines with a blank
    path.write_bytes(gzip.compress(b"5 3\n" + GLOVE.replace(b"\n", b" \n")))
    vectors = load_word_vectors(path, vocabulary, seed=1)
    assert vectors.tokenizer == WordTokenizer(vocabulary)
    assert vectors.known.tolist() == [False, False, False, True, True]
    assert vector(vectors, "the") == [1, 2, 3]
    assert vectors.matrix[2].any()
    assert np.array_equal(load_word_vectors(path, vocabulary, seed=1).matrix, vectors.matrix)
    assert not np.array_equal(load_word_vectors(path, vocabulary, seed=2).matrix[2], vectors.matrix[2])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"5 3\n", "is empty"),
        (b"the 1 2 3\ncat 4 5\n", r"vectors.txt:2: 2 numbers after the word, expected 3"),
        (b"the 1 2 3\ncat 4 x 6\n", r"vectors.txt:2: could not convert"),
        (b"the 1 2 3\ncat 4 nan 6\n", r"vectors.txt:2: NaN, infinity"),
        (b"the 1 2 1e99\n", "beyond 1e.09"),
        (b"the\n", r"vectors.txt:1: 0 numbers"),
        (b"the 1 2 3\n\ncat 4 5 6\n", r"vectors.txt:2: 0 numbers"),
        (b"3 3\nthe 1 2 3\ncat 4 5 6\n", "promises 3 words, but the file holds 2"),
        (gzip.compress(GLOVE, mtime=0)[:-5], r"end here.*download the file again"),
        (b"x" * (2**20 + 1), "not a text file of vectors"),
    ],
)
def test_a_damaged_file_of_vectors(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_word_vectors(write(tmp_path, content))


def test_vectors_without_a_wanted_word(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no vector for any of the 1 words"):
        load_word_vectors(write(tmp_path, GLOVE), Vocabulary.of(["dog"]))
    with pytest.raises(InputError, match="binary word2vec"):
        load_word_vectors(write(tmp_path, b"", "v.bin"))
    with pytest.raises(InputError, match="cannot read"):
        load_word_vectors(tmp_path / "none.txt")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_of_vectors_raise_anything_but_an_input_error(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        try:
            vectors = load_word_vectors(write(Path(folder), content))
        except InputError:
            return
    assert np.isfinite(vectors.matrix).all()


def save_pieces(folder: Path, **tensors: npt.NDArray[Any]) -> Path:
    from safetensors.numpy import save_file

    (folder / "tokenizer.json").write_text(pieces_json(PIECES), encoding="utf-8")
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_vectors_of_word_pieces(tmp_path: Path) -> None:
    whole = np.arange(20, dtype=np.int8).reshape(10, 2)
    vectors = load_word_vectors(save_pieces(tmp_path, embeddings=whole))
    assert isinstance(vectors.tokenizer, PieceTokenizer)
    expected = whole.astype(np.float32) / 127
    np.testing.assert_array_equal(vectors.matrix[1:], expected[1:])
    assert not vectors.matrix[PAD].any()

    words = load_word_vectors(tmp_path, Vocabulary.of(["cats", "dog", "sat"]))
    assert words.known.tolist() == [False, False, True, False, True]
    np.testing.assert_allclose(words.matrix[2], (expected[4] + expected[5]) / 2, rtol=1e-6)
    np.testing.assert_array_equal(words.matrix[4], expected[6])


def test_a_safetensors_file_is_read_with_the_tokenizer_beside_it(tmp_path: Path) -> None:
    matrix = np.arange(20, dtype=np.float32).reshape(10, 2)
    file = save_pieces(tmp_path, e=matrix) / "model.safetensors"
    np.testing.assert_array_equal(load_word_vectors(file).matrix[1:], matrix[1:])
    moved = file.rename(tmp_path / "glove.safetensors")
    vectors = load_word_vectors(moved, Vocabulary.of(["dog", "sat"]))
    np.testing.assert_array_equal(vectors.matrix[vectors.known], matrix[[6]])
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(
        InputError, match=r"glove.safetensors: there is no tokenizer.json next to it.*a text file"
    ):
        load_word_vectors(moved)


def test_the_words_of_a_linker_model_are_read_beside_its_matrix(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    matrix = np.arange(8, dtype=np.float32).reshape(4, 2)
    save_file({"e": matrix}, tmp_path / "v.safetensors")
    (tmp_path / "tokenizer.json").write_bytes(WordTokenizer(Vocabulary.of(["cat", "dog"])).to_bytes())
    vectors = load_word_vectors(tmp_path / "v.safetensors")
    assert vectors.tokenizer.encode_batch(["dog cat"], 9) == [[3, 2]]
    np.testing.assert_array_equal(vectors.matrix[2:], matrix[2:])
    words = load_word_vectors(tmp_path / "v.safetensors", Vocabulary.of(["dog", "new"]))
    assert words.known.tolist() == [False, False, True, False]
    np.testing.assert_array_equal(words.matrix[2], matrix[3])
    (tmp_path / "v.txt").write_bytes((tmp_path / "v.safetensors").read_bytes())
    with pytest.raises(
        InputError, match=r"word vectors are a text file .* or a .safetensors file of one matrix"
    ):
        load_word_vectors(tmp_path / "v.txt")


def test_bad_folders_of_word_pieces(tmp_path: Path) -> None:
    matrix = np.zeros((10, 2), np.float32)
    with pytest.raises(InputError, match=r"model.safetensors: 3 vectors, but tokenizer.json has 10 ids"):
        load_word_vectors(save_pieces(tmp_path, e=matrix[:3]))
    with pytest.raises(InputError, match="found 2 among a, b"):
        load_word_vectors(save_pieces(tmp_path, a=matrix, b=matrix + 1))
    with pytest.raises(InputError, match="NaN"):
        load_word_vectors(save_pieces(tmp_path, a=matrix + np.float32(np.nan)))
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"cannot read .*model.safetensors"):
        load_word_vectors(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"cannot read .*model.safetensors"):
        load_word_vectors(tmp_path)


def test_trained_vectors_are_the_same_for_the_same_seed() -> None:
    texts = [f"{a} {b} {a} x{i % 3}" for i in range(60) for a, b in (("king", "queen"), ("cat", "dog"))]
    first, second = (train_word_vectors(texts, dim=16, epochs=20, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.matrix, second.matrix)
    assert isinstance(first.tokenizer, WordTokenizer)
    assert set(first.tokenizer.vocabulary.tokens[2:]) == {"king", "queen", "cat", "dog", "x0", "x1", "x2"}
    assert first.matrix.shape == (9, 16)
    assert first.matrix.dtype == np.float32
    assert not first.matrix[PAD].any()
    assert not np.array_equal(first.matrix, train_word_vectors(texts, dim=16, epochs=20, seed=4).matrix)
    unit = first.matrix / np.maximum(np.linalg.norm(first.matrix, axis=1, keepdims=True), 1e-9)
    ids = first.tokenizer.vocabulary.ids
    king, queen, dog = unit[ids["king"]], unit[ids["queen"]], unit[ids["dog"]]
    assert king @ queen > king @ dog  # they share contexts


def test_training_without_words() -> None:
    with pytest.raises(InputError, match="no word occurs 2 times"):
        train_word_vectors(["a b", "c"])
