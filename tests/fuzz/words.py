"""Dictionaries, word vectors, tokenizers, and settings in TOML."""

import gzip
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linker.corpora.dictionaries import read_dictionary
from linker.encoders.tokens import Vocabulary, load_tokenizer, load_word_vectors
from tests.fuzz.engine import Run, Target
from tests.fuzz.files import file_target

TAB = "# a comment\nmaison\thouse\tnoun\nchat\tcat\nété\tsummer\n"
MUSE = "maison house\nchat cat\nété summer\n"
CEDICT = (
    "# CC-CEDICT\n漢字 汉字 [han4 zi4] /Chinese character/(note) to write/\n中國 中国 [Zhong1 guo2] /China/\n"
)
INDEX = "00databaseshort\tA\tM\nchat\tM\tP\nmaison\tb\tT\n"
DEFINITIONS = "00database\nx\nchat /ʃa/\n 1. cat; (a) tom\nmaison /mɛzɔ̃/\n 1. the house\n see: home\n"
SPLIT = b"%%%\n"  # between a dictd index and its definitions
VECTORS = "4 3\nthe 0.1 -0.2 3e-1\nhouse 1 2 3\nété 0 0 0.5\n. . . 1 1 1\n"
GLOVE = "the 0.1 -0.2 0.3\nhouse 1 2 3\n"
PIECES = """{"version": "1.0", "truncation": null, "padding": null,
 "added_tokens": [{"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true}],
 "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null, "decoder": null,
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
           "max_input_chars_per_word": 100, "vocab": {"[PAD]": 0, "[UNK]": 1, "a": 2, "##b": 3}}}"""
TOML = """[data]
queries = "tweets.jsonl"
documents = "news"
train = "train.qrels"
sif = 0.001

[encoder]
kind = "cnn"
filters = 4
widths = [2, 3]

[training]
loss = "infonce"
lr = 5e-4
epochs = 3

[output]
path = "model"
"""


def dictd(work: Path) -> tuple[Sequence[bytes], Run]:
    """Read a dictd dictionary, whose index and definitions are in one input."""

    def run(data: bytes) -> None:
        index, _, definitions = data.partition(SPLIT)
        (work / "d.index").write_bytes(index)
        (work / "d.dict").write_bytes(definitions)
        read_dictionary(work / "d.index")

    return [INDEX.encode() + SPLIT + DEFINITIONS.encode()], run


def use_tokenizer(path: Path) -> None:
    tokenizer = load_tokenizer(path)
    ids = tokenizer.encode_batch(["a b", "", "[PAD] xé", "a" * 300], 16)
    assert all(0 <= id_ < tokenizer.size for row in ids for id_ in row), "an id beyond the tokenizer's size"


def load_some_vectors(path: Path) -> None:
    for vocabulary in (None, Vocabulary.of(["the", "house", "maison"])):
        found = load_word_vectors(path, vocabulary)
        assert found.matrix.shape[0] == found.tokenizer.size == len(found.known)
        assert np.isfinite(found.matrix).all(), "vectors that are not numbers"


def read_toml(path: Path) -> None:
    from linker.base import config
    from linker.training.config import TrainConfig

    config.load(path, TrainConfig)


def read_overrides(path: Path) -> None:
    from linker.base import config
    from linker.training.config import TrainConfig

    values = {"data": {"queries": "q", "documents": "d", "train": "t"}, "output": {"path": "o"}}
    config.build(
        TrainConfig, values, path.read_bytes().decode(errors="surrogateescape").split("\n"), "x.toml"
    )


def metrics(work: Path) -> tuple[Sequence[bytes], Run]:
    """Read the log of a training run, and extract the data for the plots."""
    from linker.training.plots import read_metrics

    path = work / "training" / "metrics.jsonl"
    path.parent.mkdir()

    def run(data: bytes) -> None:
        path.write_bytes(data)
        found = read_metrics(work)
        for key in ("alpha", "sparsity"):
            found.series(key)

    return [
        b'{"epoch": 0.5, "step": 1, "loss": 0.7}\n{"epoch": 1, "dev_mrr": 0.4, "alpha": {"h0": [1.5, 1.2]}}\n'
        b'{"epoch": 2, "sparsity": {"h0": 0.5}}\n'
    ], run


def linking(work: Path) -> tuple[Sequence[bytes], Run]:
    """Resume an interrupted linking of pages."""
    from linker.crosslingual.scoring.candidates import Candidates, PassState
    from linker.crosslingual.scoring.checkpoint import Checkpoint

    path = work / "x.part"

    def progress() -> PassState:
        found = Candidates(np.full((4, 3), -1, dtype=np.int64), np.full((4, 3), -np.inf, dtype=np.float32))
        return PassState(found, np.zeros((2, 5), dtype=np.float32), np.full((2, 5), -1, dtype=np.int32))

    def run(data: bytes) -> None:
        path.write_bytes(data)
        resumed = progress()
        Checkpoint(path, "print", resume=True).restore(resumed)
        assert 0 <= resumed.done <= 4

    begun = progress()
    begun.done = 2
    Checkpoint(path, "print", every=-1).keep(begun)
    return [path.read_bytes()], run


def _packed() -> bytes:
    file = io.BytesIO()
    file.write(gzip.compress(TAB.encode(), mtime=0))
    return file.getvalue()


DICTIONARY_TOKENS = ("\t", " ", "[", "]", "/", "(", "((((", "{", "<", "#", "to ", "1. ", '"')
TRAINING = ("linker.training.config",)
TARGETS = [
    file_target("dictionary", "d.tsv", read_dictionary, [TAB, MUSE, CEDICT], DICTIONARY_TOKENS, cases=800),
    file_target("dictionary-gzip", "d.gz", read_dictionary, [_packed()], cases=300),
    Target(
        "dictionary-dictd", dictd, tuple(t.encode() for t in (*DICTIONARY_TOKENS, "A", "//////", "+")),
        cases=500,
    ),
    file_target(
        "word-vectors", "v.txt", load_some_vectors, [VECTORS, GLOVE],
        (" ", "nan", "1e10", "\u00a0", "\u2028"), cases=500,
    ),
    file_target(
        "tokenizer", "tokenizer.json", use_tokenizer, [PIECES, '{"type": "words", "tokens": ["", "?", "a"]}'],
        cases=500,
    ),
    file_target("toml", "x.toml", read_toml, [TOML], ("[", "]", "=", '"""', "1979-05-27"), 800, TRAINING),
    file_target(
        "overrides", "set", read_overrides, ["training.lr=0.1\nencoder.kind=bag\ndata.dim = 3"],
        ("=", ".", "["), 500, TRAINING,
    ),
    Target(
        "metrics", metrics, (b'"epoch"', b'"alpha"', b'"loss"'), cases=300, preload=("linker.training.plots",)
    ),
    Target("linking", linking, cases=300),
]  # fmt: skip
