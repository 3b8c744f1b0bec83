"""`bucc dictionary`: a dictionary learned from two collections of pages, without links."""

from dataclasses import dataclass
from pathlib import Path

from linker.base.errors import InputError
from linker.base.files import check_outputs, write_atomically
from linker.base.progress import Progress, bar, listening
from linker.crosslingual.lexicon.alignment import STEPS
from linker.crosslingual.pages.pages import pages_of, split_languages
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.unsupervised import AGREEMENT, aligned_words


@dataclass(frozen=True, slots=True)
class LearnedDictionary:
    """A dictionary of `pairs` in `file`; `agreement`: the share of held-out words spelt alike that it recovers."""

    file: Path
    pairs: int
    agreement: float


def learn_dictionary(
    source: str | Path,
    target: str | Path,
    out: str | Path,
    *,
    languages: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> LearnedDictionary:
    """Learn word translations from two collections of pages, and write them as `source TAB target`.

    Word vectors of both collections are mapped onto each other, starting from words that are spelt alike, which are
    not written. The other pairs are written as stems, which `link` accepts as a dictionary. Raises InputError if a
    file cannot be read or written, or if the mapping recovers fewer than a fifth of the held-out words, as happens in
    small collections.
    """
    check_outputs({"`out`": out}, (source, target))
    with listening(progress):
        codes = split_languages(languages) if languages else (None, None)
        evidence = AllEvidence(pages_of(source, codes[0]), pages_of(target, codes[1]))
        with bar(2 * STEPS, "learning words", "steps") as meter:
            pairs, agreement = aligned_words(evidence, seed=seed, advance=meter.update)
    if not pairs:
        raise InputError(
            f"{source}, {target}: too few pages, or too little in common, to learn a dictionary: only {agreement:.0%} "
            f"of the held-out words that are spelt alike were matched correctly, and {AGREEMENT:.0%} are needed; pass "
            "more pages, or use a dictionary"
        )
    # `link` matches words that are spelt alike without a dictionary.
    new = sorted((foreign, word) for foreign, word in pairs if foreign != word)
    lines = "".join(f"{foreign}\t{word}\n" for foreign, word in new)
    write_atomically(Path(out), lines.encode())
    return LearnedDictionary(Path(out), len(new), agreement)
