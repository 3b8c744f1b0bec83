"""Tokenizers, which turn text into ids, and word vectors for the ids. Id 0 is padding in every tokenizer."""

from linker.encoders.tokens.pieces import PieceTokenizer, load_tokenizer
from linker.encoders.tokens.vectors import WordVectors, load_word_vectors, train_word_vectors
from linker.encoders.tokens.words import PAD, UNK, Tokenizer, Vocabulary, WordTokenizer, tokenize

__all__ = [
    "PAD",
    "UNK",
    "PieceTokenizer",
    "Tokenizer",
    "Vocabulary",
    "WordTokenizer",
    "WordVectors",
    "load_tokenizer",
    "load_word_vectors",
    "tokenize",
    "train_word_vectors",
]
