"""What do Snowball's stems contribute to links between Arabic and English?

The Arabic texts are the first sentences of pairs 0 to 79 of STS-2017 ar-ar. Their translations (ours, by hand, in
support/arabic_english.txt) are to be found among all English sentences of STS-2017 en-en, given MUSE's dictionary.
The stems were chosen on the first half, `dev`. `prefixes`: words are cut to seven letters, as in other languages.

    python -m benchmarks.arabic
"""

from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.support.common import records, shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from linker.corpora.dictionaries import read_dictionary
from linker.crosslingual.methods import link
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import Task

TRANSLATIONS = Path(__file__).parent / "support" / "arabic_english.txt"
CODES = {"Snowball": "ar", "prefixes": "und"}


def pages(prefix: str, texts: list[str], code: str) -> Pages:
    return Pages(tuple(f"{prefix}{i}" for i in range(len(texts))), tuple(texts), language(code))


@benchmark()
def measured(options: Arguments) -> Results:
    folder = shared_data() / "sts"
    english = TRANSLATIONS.read_text(encoding="utf-8").splitlines()
    arabic = [r["text1"] for r in records(folder / "sts17-ar-ar.jsonl.gz")][: len(english)]
    others = (r[key] for r in records(folder / "sts17-en-en.jsonl.gz") for key in ("text1", "text2"))
    target = pages("e", [*english, *dict.fromkeys(others)], "en")
    words = read_dictionary(shared_data() / "dictionaries" / "ar-en.tsv.gz")
    rows = []
    for method, (stems, code) in product(("dictionary", "auto"), CODES.items()):
        found = link(Task(pages("a", arabic, code), target, (words,)), method).candidates.targets
        places = found == np.arange(len(arabic))[:, None]
        reciprocal = np.where(places.any(axis=1), 1 / (places.argmax(axis=1) + 1), 0)
        half = len(arabic) // 2
        for split, part in (("dev", reciprocal[:half]), ("test", reciprocal[half:])):
            figures = {"mrr": round(float(part.mean()), 4), "success_1": round(float((part == 1).mean()), 4)}
            rows.append({"method": method, "stems": stems, "split": split, **figures})
    return {"candidates": len(target), "rows": rows}
