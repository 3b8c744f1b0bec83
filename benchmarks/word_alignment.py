"""How good is the dictionary learned without supervision, compared with MUSE's?

All `hard` pages of a language and the English pages are used. The evaluated pairs are those whose source word MUSE
translates into a word of these English pages; identically spelt words are left out, because the mapping starts from
them. "agreement" is the figure available to linker: the share of held-out identical words that the mapping recovers.
If it is too low, linker uses no pair; the precision is reported in any case.

    python -m benchmarks.word_alignment [--languages fr,de]
"""

import time
from typing import Any

from benchmarks.auto_link import LANGUAGES, dictionaries_of, pages_of
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from linker.crosslingual.lexicon.lexicon import from_pairs
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.unsupervised import AGREEMENT, aligned_words


def row_of(code: str) -> dict[str, Any]:
    evidence = AllEvidence(pages_of("hard", code), pages_of("hard", "en"))
    start = time.process_time()
    pairs, agreement = aligned_words(evidence, least_agreement=0)
    seconds = time.process_time() - start
    x, y = evidence.source_terms, evidence.target_terms
    muse = from_pairs(dictionaries_of(code)[0].pairs, evidence.source.language, evidence.target_language)
    known = muse.relation(x, y)
    places = [(x.position[s], y.position[t]) for s, t in pairs]
    judged = [known[s, t] > 0 for s, t in places if not evidence.spelling[s, t] and known[[s]].nnz]
    return {
        "language": code,
        "pairs": len(pairs),
        "agreement": round(agreement, 4),
        "used": agreement >= AGREEMENT,
        "judged": len(judged),
        "precision": round(sum(judged) / max(len(judged), 1), 4),
        "muse_pairs": int(known.nnz),
        "cpu_s": round(seconds, 1),
    }


@benchmark(languages=Commas(LANGUAGES), rows=ROWS)
def aligned(options: Arguments) -> Results:
    for row in options.rows.missing(language=options.languages):
        options.rows.keep(row_of(row["language"]))
    return {"rows": options.rows}
