"""Names, numbers and years that pages share, after romanisation."""

import re

import numpy as np
import scipy.sparse as sp

from linker.crosslingual.pages.pages import Pages, Terms, count_terms
from linker.crosslingual.pages.surface import letters, romanise
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.scoring.products import Restrictable, WeightedProduct
from linker.crosslingual.scoring.sparse import scale_columns

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def names_in(text: str) -> list[str]:
    """Return a text's capitalised words, romanised; if the text is in a script other than Latin, also all ASCII words.

    It is a cheap substitute for a named-entity recogniser and needs no model; in German, it returns every noun.
    """
    other = sum(1 for c in text[:2000] if c.isalpha() and ord(c) > 0x24F) * 2 > min(len(text), 2000) // 2
    return [romanise(w) for w in letters(text, 2) if w[0].isupper() or (other and w.isascii())]


def numbers_in(text: str) -> list[str]:
    """Return numbers of at least two characters, years included."""
    return [n for n in _NUMBER.findall(text) if len(n) > 1]


def years_in(text: str) -> list[str]:
    """Return the four-digit numbers from 1000 to 2099."""
    return [n for n in _NUMBER.findall(text) if len(n) == 4 and n[0] in "12" and n < "2100"]


def shared_names(source: Pages, target: Pages) -> dict[str, Restrictable]:
    """Return the idf-weighted overlap and Dice's coefficient of names, numbers and years, six scores [n, m] by name."""
    scores: dict[str, Restrictable] = {}
    for name, split in (("names", names_in), ("numbers", numbers_in), ("years", years_in)):
        x, y = count_terms(source.texts, split), count_terms(target.texts, split)
        columns = x.common(y)
        left, right = x.present[:, columns[0]], y.present[:, columns[1]]
        weighted = scale_columns(left, idf(_onto(y, right)))
        scores[f"{name}.overlap"] = WeightedProduct(weighted, sp.csr_array(right.T))
        sizes = (np.asarray(terms.present.sum(axis=1), np.float32).ravel() for terms in (x, y))
        scores[f"{name}.dice"] = WeightedProduct(2 * left, sp.csr_array(right.T), *sizes)
    return scores


def _onto(y: Terms, matrix: sp.csr_array) -> Terms:
    return Terms(tuple(str(i) for i in range(matrix.shape[1])), matrix)
