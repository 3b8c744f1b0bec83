"""`triangulate`: links between more than two languages, made mutually consistent."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import scipy.sparse as sp

from linker.base.errors import InputError
from linker.base.files import read_json, write_atomically
from linker.base.logs import logger
from linker.base.options import takes
from linker.crosslingual.options import TriangulateOptions
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages, split_languages
from linker.crosslingual.runs import metadata_path, run_of, write_links
from linker.crosslingual.scoring.assignment import descending, promote
from linker.crosslingual.scoring.candidates import Candidates, hashes, rank
from linker.crosslingual.triangles import Counterparts, Network, Pair, add_paths, clusters, network
from linker.evaluation.reading.judgements import merged_qrels
from linker.evaluation.reading.trec import read_run

CLUSTERS = "clusters.jsonl"
NAMED = re.compile(r"([A-Za-z]+-[A-Za-z]+)=(.+)", re.DOTALL)
ABOVE = 1 + 1e-6  # maximum score in a run: `descending` raises some of 1 so that a page's scores differ
Named = str | Path


@dataclass(frozen=True, slots=True)
class Triangles:
    """Clusters of counterparts, surest first, and a run per pair of languages: "de-fr" → page → page → probability."""

    clusters: Sequence[Counterparts]
    runs: Mapping[str, Mapping[str, Mapping[str, float]]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.clusters)


@takes(TriangulateOptions)
def triangulate(options: TriangulateOptions) -> Triangles:
    """Combine runs of several pairs of languages: links through a third language are evidence for direct ones.

    `runs` were written by `link` with the method `auto` or `cascade`, whose scores are probabilities; the languages
    are those of RUN.json, or of a prefix such as "de-en=links.run". `known`: qrels of links that are certain, with
    such a prefix. With `out`, a run for each pair and clusters.jsonl are written into that folder. Raises InputError
    if a file cannot be read, its languages are unknown, or its scores are not probabilities.
    """
    o, out = options, None if options.out is None else Path(options.out)
    if len(o.runs) + len(o.known) < 2:
        raise InputError("triangulation needs two pairs of languages or more: name several runs")
    direct = network(map(_run, o.runs), map(_known_links, o.known))
    joint = add_paths(direct)
    groups = clusters(joint, o.min_probability)
    # The cluster of each page: (language, id) → language → id.
    partners = {page: cluster.pages for cluster in groups for page in cluster.pages.items()}
    written = {}
    for (source, target), matrix in joint.links.items():
        ours, theirs = _bare(joint, source), _bare(joint, target)
        candidates = _candidates(matrix, ours, theirs, partners, o.k)
        name = f"{source}-{target}"
        written[name] = run_of(ours, theirs, candidates)
        if out is not None:
            about = _about(direct, (source, target), o.min_probability)
            _folder(out)
            write_links(out / f"{name}.run", ours, theirs, candidates, o.run_name, about)
    if out is not None:
        _folder(out)
        lines = (orjson.dumps({"pages": c.pages, "probability": c.probability}) + b"\n" for c in groups)
        write_atomically(out / CLUSTERS, b"".join(lines))
    logger.info("%s clusters of pages in %s", f"{len(groups):,}", ", ".join(joint.ids))
    return Triangles(groups, written)


def _run(named: Named) -> tuple[Pair, Mapping[str, Mapping[str, float]]]:
    pair, path = _split(named)
    pair = pair or _languages(path)
    run = read_run(path)
    for source, scores in run.items():
        for target, score in scores.items():
            if not 0 <= score <= ABOVE:
                raise InputError(
                    f"{path}: the score {score:g} of {source} and {target} is not a probability: triangulation "
                    "needs runs of the methods auto or cascade"
                )
    return pair, run


def _known_links(named: Named) -> tuple[Pair, Mapping[str, Mapping[str, float]]]:
    pair, path = _split(named)
    if pair is None:
        raise InputError(f"{path}: name the languages of known links before their file, such as de-en={path}")
    judged = merged_qrels([path])
    return pair, {s: {t: 1.0 for t, grade in targets.items() if grade > 0} for s, targets in judged.items()}


def _split(named: Named) -> tuple[Pair | None, Path]:
    """Return the languages before "=", if there are any, and the path."""
    match = NAMED.fullmatch(named) if isinstance(named, str) else NAMED.fullmatch(str(named))
    if match is None or Path(named).exists():
        return None, Path(named)
    return split_languages(match[1].lower()), Path(match[2])


def _languages(path: Path) -> Pair:
    """Return the languages of a run, as named in the file next to it."""
    beside = metadata_path(path)
    remedy = f"name them before the run, such as de-en={path}"
    try:
        languages = read_json(beside).get("languages")
    except (OSError, AttributeError) as e:
        raise InputError(
            f"cannot tell the languages of {path}, as {beside} cannot be read ({e}): {remedy}"
        ) from None
    if not isinstance(languages, list) or len(languages) != 2 or len(set(map(str, languages))) < 2:
        raise InputError(f"{beside} does not name two languages: {remedy}")
    return str(languages[0]), str(languages[1])


def _candidates(
    matrix: sp.csr_array,
    source: Pages,
    target: Pages,
    partners: Mapping[tuple[str, str], Mapping[str, str]],
    k: int,
) -> Candidates:
    """Rank each page's targets by probability, but move its cluster's target to the front, lowering higher scores."""
    links = sp.coo_array(matrix)
    names = hashes(source.ids), hashes(target.ids)
    columns = links.col.astype(np.int64)
    depth = max(k, int(np.diff(matrix.indptr).max(initial=1)))
    ranking = rank(
        links.row.astype(np.int64), columns, links.data.astype(np.float32), len(source), depth, *names
    )
    code, other = source.language.code, target.language.code
    partner = np.array(
        [target.position.get(partners.get((code, id_), {}).get(other, ""), -1) for id_ in source.ids],
        np.int64,
    )
    promoted = promote(ranking, partner)
    first = np.where(ranking.targets == promoted.targets[:, :1], ranking.scores, -np.inf).max(axis=1)
    scores = np.minimum(promoted.scores, first[:, None])
    return descending(Candidates(promoted.targets, scores).cut(k))


def _bare(links: Network, code: str) -> Pages:
    """Return the pages of a language without their texts, which are no longer needed."""
    return Pages(links.ids[code], ("",) * len(links.ids[code]), language(code))


def _about(links: Network, pair: Pair, least: float) -> Mapping[str, Any]:
    through = [
        code
        for code in links.ids
        if code not in pair and all(links.between(one, code) is not None for one in pair)
    ]
    direct = {"direct": links.between(*pair) is not None, "through": through}
    return {"method": "triangles", "languages": pair, **direct, "min_probability": least}


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"cannot write the folder {path}: {e.strerror}") from e
