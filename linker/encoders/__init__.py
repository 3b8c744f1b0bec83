"""Encoders, which map texts to vectors. `load_encoder` loads one by name or path."""

from linker.encoders.interface import Encoder, Precision
from linker.encoders.loading import load_encoder

__all__ = ["Encoder", "Precision", "load_encoder"]
