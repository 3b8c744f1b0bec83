"""Model folders: config.json, weights, tokenizer and checkpoint from an untrusted source."""

from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.engine import Run, Target
from tests.fuzz.files import nearest

VOCABULARY = "abcdefg"
TORCH = ("linker.encoders.folder", "linker.training.checkpoint")


def folder_target(name: str, file: str, cases: int) -> Target:
    """Alter one file of a saved encoder; a folder that loads must encode."""

    def prepare(work: Path) -> tuple[Sequence[bytes], Run]:
        import torch

        from linker.encoders.configs import BagConfig, GruConfig, ModelConfig, StarConfig
        from linker.encoders.folder import load, save
        from linker.encoders.text import TextEncoder
        from linker.encoders.tokens import Vocabulary, WordTokenizer

        torch.set_num_threads(1)
        torch.manual_seed(0)
        configs: tuple[ModelConfig, ...] = (
            StarConfig(dim=8, heads=2, head_dim=4),
            BagConfig(8),
            GruConfig(8, hidden=6),
        )
        for number, config in enumerate(configs):
            save(TextEncoder.new(config, WordTokenizer(Vocabulary.of(VOCABULARY)), 20), work / f"m{number}")
        folders = [work / f"m{number}" for number in range(len(configs))]
        sound = [(folder / file).read_bytes() for folder in folders]

        def run(data: bytes) -> None:
            folder = folders[nearest(data, sound)]
            (folder / file).write_bytes(data)
            try:
                vectors = load(folder).encode(["a b", "", "x"])
                assert vectors.shape[0] == 3
            finally:
                for place, content in zip(folders, sound, strict=True):
                    (place / file).write_bytes(content)

        return sound, run

    words = (
        b'"kind"', b'"model"', b'"dim"', b'"layers"', b'"max_length"', b'"dtype"', b'"data_offsets"',
        b'"F32"',
    )  # fmt: skip
    return Target(name, prepare, words, cases=cases, preload=TORCH)


def graph(work: Path) -> tuple[Sequence[bytes], Run]:
    """Encode with an altered ONNX graph; a graph of another model is ignored."""
    import torch

    from linker.encoders.configs import BagConfig
    from linker.encoders.folder import save
    from linker.encoders.onnx_export import export
    from linker.encoders.onnx_model import load_onnx
    from linker.encoders.text import TextEncoder
    from linker.encoders.tokens import Vocabulary, WordTokenizer

    torch.set_num_threads(1)
    folder = work / "graph"
    save(TextEncoder.new(BagConfig(8), WordTokenizer(Vocabulary.of(VOCABULARY)), 20), folder)
    export(folder)
    content = (folder / "model.onnx").read_bytes()

    def run(data: bytes) -> None:
        (folder / "model.onnx").write_bytes(data)
        if encoder := load_onnx(folder):
            assert encoder.encode(["a b", "", "x"]).shape == (3, encoder.dim)

    return [content], run


def pieces(work: Path) -> tuple[Sequence[bytes], Run]:
    """Read word vectors from a folder with word pieces and altered weights."""
    import numpy as np
    from safetensors.numpy import save

    from linker.encoders.tokens import load_word_vectors
    from tests.fuzz.words import PIECES

    folder = work / "pieces"
    folder.mkdir()
    (folder / "tokenizer.json").write_text(PIECES, encoding="utf-8")

    def run(data: bytes) -> None:
        (folder / "model.safetensors").write_bytes(data)
        load_word_vectors(folder)

    matrix = np.arange(16, dtype=np.float32).reshape(4, 4)
    return [save({"embedding": matrix}), save({"e": matrix.astype(np.int8), "x": np.zeros(2, np.int8)})], run


def checkpoint(work: Path) -> tuple[Sequence[bytes], Run]:
    """Resume a training run from an altered checkpoint."""
    import torch
    from torch import nn

    from linker.training.checkpoint import TrainingProgress, load_checkpoint, save_checkpoint
    from linker.training.config import TrainingConfig
    from linker.training.optimizer import Optimizer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = nn.Module()
    module.embedding = nn.Embedding(3, 2)
    module.linear = nn.Linear(2, 2)
    path = work / "checkpoint.safetensors"

    def optimizer() -> Optimizer:
        return Optimizer(module, TrainingConfig())

    first = optimizer()
    module.linear(module.embedding(torch.tensor([0, 1]))).sum().backward()
    first.step(1.0)
    save_checkpoint(path, module, first, TrainingProgress(step=1), "{}")

    def run(data: bytes) -> None:
        path.write_bytes(data)
        load_checkpoint(path, module, optimizer(), "{}")

    return [path.read_bytes()], run


TARGETS = [
    folder_target("encoder-config", "config.json", 400),
    folder_target("encoder-weights", "model.safetensors", 400),
    folder_target("encoder-tokenizer", "tokenizer.json", 200),
    Target(
        "encoder-graph", graph, (b"Loop", b"If", b"Expand", b"location", b"vectors"), cases=400, preload=TORCH
    ),
    Target(
        "checkpoint", checkpoint, (b'"random"', b'"progress"', b'"dtype"', b'"shape"'), cases=300,
        preload=TORCH,
    ),
    Target(
        "pieces-weights", pieces, (b'"dtype"', b'"data_offsets"', b'"shape"', b'"BF16"', b'"I64"'), cases=300
    ),
]  # fmt: skip
