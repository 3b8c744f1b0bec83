"""The index for measuring the service: sentences with vectors from a star over static word pieces."""

import dataclasses
import shutil
from pathlib import Path

import torch

from benchmarks.support.common import shared_data
from benchmarks.support.passages import SEED, prepare
from linker.encoders.configs import PRESETS, StarConfig
from linker.encoders.folder import save
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import load_word_vectors
from linker.engine import building


def make_star(folder: Path) -> Path:
    """Write the recommended star over word-vectors-en, untrained: it is as fast as a trained star."""
    words = load_word_vectors(shared_data() / "word-vectors-en")
    torch.manual_seed(SEED)
    recommended = PRESETS["recommended"]
    assert isinstance(recommended, StarConfig)
    config = dataclasses.replace(recommended, dim=words.matrix.shape[1])
    encoder = TextEncoder.new(config, words.tokenizer, 512)
    embedding = encoder.module.get_parameter("embedding.weight")
    embedding.data = torch.from_numpy(words.matrix).clone()
    save(encoder, folder)
    return folder


def make_index(work: Path, sentences: int) -> Path:
    """Return the index of this many sentences in `work`, built if missing."""
    out = work / f"sentences-{sentences}"
    if not (out / "manifest.json").exists():
        shutil.rmtree(out, ignore_errors=True)
        star = work / "star"
        if not star.exists():
            make_star(star)
        data = prepare(work, sentences)
        building.build([data.sentences], out, building.BuildOptions(encoder=str(star), vectors="flat"))
    return out
