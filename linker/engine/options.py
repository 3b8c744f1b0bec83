"""The options of searches and builds, declared once for all interfaces. Imports nothing heavy."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from indexes.kinds import KINDS, VectorKindName
from indexes.text.parameters import LONGEST, AnalysisSettings, Bm25Parameters, TokenizerName
from linker.base.errors import InputError, UsageError
from linker.base.options import Opt, shown

if TYPE_CHECKING:
    from indexes.cluster.client import ElasticSettings
    from indexes.filters import Filter, Where
    from indexes.hybrid import Answer
    from linker.base.progress import Progress
    from linker.corpora import Columns
    from linker.scoring.ranking.ranker import Ranker
    from linker.scoring.reranking import Reranker

BM25, RERANKING, CUT = "BM25", "Reranking", "Cutoffs"
WORDS, VECTORS = "Words", "Vectors"
WHERE = Opt(
    "Only documents whose metadata match: lang=en, lang=en|de, lang!=en, likes>100, date>=2021-01-31. Repeatable: all "
    "must match, but any of the values given for one field= will do.", metavar="CONDITION", complete="conditions",
    read=list[str])  # fmt: skip
ModeOption = Annotated[
    Literal["hybrid", "dense", "bm25"] | None,
    Opt("How to search. Default: the mode that `linker index tune` chose."),
]
EncoderOption = Annotated[
    str | None,
    Opt("Where the index's encoder is now, if it has moved.", metavar="NAME|PATH", complete="encoders"),
]


Keep = Annotated[int | None, Opt(
    "From now on, keep this many older generations for `index checkout`.", metavar="N", low=0,
    high=999_999)]  # fmt: skip
EncoderPrecision = Annotated[Literal["float32", "bfloat16"], Opt(
    "bfloat16 is faster on processors that support it; its vectors have a cosine > .999 with float32's.",
    "--dtype", VECTORS)]  # fmt: skip
EncoderCompiled = Annotated[bool, Opt(
    "Compile the encoder first (needs a C++ compiler and a minute); pays off for long texts.", "--compile",
    VECTORS)]  # fmt: skip


# fmt: off
@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search; the fields are the arguments of `Engine.search`, which describes them.

    `reranker` reorders the top `depth` candidates; a server may batch requests with equal options.
    """

    k: Annotated[int, Opt("Documents per query.", "-k", low=1)] = 10
    _: KW_ONLY
    mode: ModeOption = None
    where: Annotated["Filter | Where | None", WHERE] = None
    bm25: Bm25Parameters | None = None
    reranker: "Reranker | Ranker | None" = None
    depth: Annotated[int, Opt(
        "Candidates per query that a pair scorer reads, at least -k.", group=RERANKING, low=1)] = 100
    weight: Annotated[float, Opt(
        "Weight of a pair scorer; below 1, its z-scores are mixed with those of the search.", "--rerank-weight",
        RERANKING, low=0, high=1)] = 1.0
    stored_ranker: Annotated[bool, Opt(
        "Ignore the ranker that is stored in the index.", "--no-rerank", RERANKING, off=True)] = True
    phrases: Annotated[bool, Opt(
        'Only documents that contain the words in "quotes" consecutively.')] = False
    probabilities: bool = True

    @property
    def filter(self) -> "Filter | None":
        """The conditions on metadata. Raises BadFilterError if they cannot be parsed."""
        if self.where is None:
            return None
        from indexes.filters import Filter

        return Filter.parse(self.where)


@dataclass(frozen=True, slots=True)
class Bm25Options:
    """BM25 parameters to change; omitted ones stay as they are."""

    k1: Annotated[float | None, Opt(
        "BM25's k1: saturation of counts in documents.", group=BM25, metavar="NUMBER")] = None
    b: Annotated[float | None, Opt(
        "BM25's b: discount of long documents, 0 to 1.", group=BM25, metavar="NUMBER")] = None
    k3: Annotated[float | None, Opt(
        "BM25's k3: saturation of counts in queries; 0: each term once, inf: each repetition.", group=BM25,
        metavar="NUMBER")] = None
    field_weight: Annotated[Sequence[str], Opt(
        "Weight of a field in BM25; 0 leaves it out. Repeatable.", group=BM25, metavar="FIELD=NUMBER")] = ()
    field_b: Annotated[Sequence[str], Opt(
        "BM25's b of a field. Repeatable.", group=BM25, metavar="FIELD=NUMBER")] = ()

    def __post_init__(self) -> None:
        """Raise UsageError if the weight or b of a field is not a number."""
        _numbers("field_weight", self.field_weight), _numbers("field_b", self.field_b)

    def changed(self, stored: Bm25Parameters) -> Bm25Parameters:
        """Return the parameters with these values replaced. Raises IndexesError if a value is out of range."""
        weights, bs = _numbers("field_weight", self.field_weight), _numbers("field_b", self.field_b)
        return stored.changed(self.k1, self.b, self.k3).weighted(weights, bs)
@dataclass(frozen=True, slots=True)
class Least:
    """Conditions for keeping a hit: a minimum P(link) or score, or, for the first hit, a guaranteed precision."""

    precision: Annotated[float | None, Opt(
        "Keep only each query's first document, and only if P(link) guarantees this precision. Needs "
        "`linker calibrate`.", group=CUT, low=0, high=1)] = None
    threshold: Annotated[float | None, Opt(
        "Keep documents of at least this P(link).", group=CUT, low=0, high=1)] = None
    score: Annotated[float | None, Opt("Keep documents of at least this score.", group=CUT)] = None

    def cut(self, answer: "Answer") -> "Answer":
        """Return the answer without hits below this P(link) or score. Raises InputError if P(link) is not known."""
        from linker.scoring.probability import cutting

        if self.score is not None:
            answer = cutting.by_score(answer, self.score)
        return answer if self.threshold is None else cutting.by_probability(answer, self.threshold)


@dataclass(frozen=True, kw_only=True)
class IntakeOptions:
    """How documents are read and added. `columns`: how to read tables; None: as when the index was built."""

    batch_size: Annotated[int, Opt("Documents encoded and added per batch.", low=1)] = 256
    columns: "Columns | None" = None
    keep: Keep = None
    vectors_file: Annotated[Path | None, Opt(
        "Take the documents' vectors from this .npy or FAISS file; --encoder names the encoder that made them.",
        group=VECTORS, metavar="FILE")] = None
    ids_file: Annotated[Path | None, Opt(
        "Ids of --vectors-file's rows, one per line.", "--ids", VECTORS, metavar="FILE")] = None


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """The settings of an index. `bm25`: None stands for the defaults.

    `positions` stores a forward index, which a learned ranker reads; `elastic`: the server on which BM25 runs, if any.
    """

    encoder: Annotated[str | Path, Opt(
        "Encoder for dense retrieval; none: BM25 only.", group=VECTORS, metavar="NAME|PATH|none",
        complete="encoders", read=str)] = "none"
    vectors: Annotated[str, Opt(
        "; ".join(f"{kind.name}: {kind.summary}" for kind in KINDS.values()) + ".", group=VECTORS,
        read=VectorKindName)] = "auto"
    language: Annotated[str, Opt("Language of the stemmer and the stop words.", group=WORDS)] = "english"
    tokenizer: Annotated[TokenizerName, Opt(
        "words: letters and digits; posts: also reads addresses, @handles, #hashtags and _.", group=WORDS)] = "words"
    stop_words: Annotated[bool, Opt(
        "Drop stop words from documents too, not only from queries.", group=WORDS)] = False
    min_token: Annotated[int, Opt(
        "Drop terms of fewer characters than this.", group=WORDS, low=1, high=LONGEST)] = 1
    bm25: Bm25Parameters | None = None
    positions: Annotated[bool, Opt(
        "Store terms in order too, for a learned ranker.", group=BM25)] = False
    elastic: "ElasticSettings | None" = None

    @property
    def analysis(self) -> AnalysisSettings:
        """How texts become terms. Raises IndexesError if a setting is unknown."""
        return AnalysisSettings(self.language, self.tokenizer, self.stop_words, self.min_token)


@dataclass(frozen=True)
class CreateOptions(IndexOptions):
    """All options of `create`, which makes an empty index in the directory or at the server address `out`."""

    out: str | Path


@shown
@dataclass(frozen=True, kw_only=True)
class BuildOptions(IndexOptions, IntakeOptions):
    """Options of a build, which commits after `commit_every` documents (0: by volume), at least once a minute."""

    commit_every: Annotated[int, Opt(
        "Documents per commit; 0: commit by volume, at least once a minute.", low=0)] = 0
    precision: EncoderPrecision = "float32"
    compiled: EncoderCompiled = False
    engine: Annotated[Literal["local", "ray"], Opt(
        "Encode on this machine, or with Ray on all machines of the cluster at RAY_ADDRESS.",
        group=VECTORS)] = "local"
    worker_gpus: Annotated[float, Opt(
        "Ray GPUs for each worker of --engine ray to encode on; 0.5: two workers share one.",
        group=VECTORS, metavar="N", low=0)] = 0.0

    def __post_init__(self) -> None:
        """Raise InputError if GPUs are requested that workers cannot have or cannot use."""
        gpus = self.worker_gpus
        if gpus and (self.engine != "ray" or self.encoder == "none"):
            raise InputError(
                "`worker_gpus` is for workers that encode: set `engine` to ray, and give an `encoder`"
            )
        if not 0 <= gpus < math.inf or (gpus > 1 and gpus != int(gpus)):
            raise InputError(
                f"`worker_gpus` is {gpus:g}: it must be a fraction of one GPU, such as 0.5, or a whole number of GPUs"
            )


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """All options of `group`. `columns`: how to read tables; `progress`: a callback that receives the progress."""

    corpora: Annotated[str | Path | Sequence[str | Path], Opt(
        "Documents to group: files, folders or an index.", "", metavar="CORPUS...", read=list[Path])]
    out: Annotated[str | Path | None, Opt(
        "Write every document with its group here: .csv, .xlsx or .jsonl.", metavar="GROUPS", required=True)] = None
    _: KW_ONLY
    train: Annotated[str | Path | Sequence[str | Path], Opt(
        "Judged pairs to learn from: qrels, or a table of ids (.csv, .xlsx, .jsonl). Repeatable.",
        metavar="FILE")] = ()
    days: Annotated[float | None, Opt("Do not link documents whose dates are further apart.", low=0)] = None
    precision: Annotated[float | None, Opt(
        "Keep only groups whose pairs together have this precision, certified on --train.", low=0,
        high=1)] = None
    sample: Annotated[str | Path | None, Opt(
        "Write random pairs within and between groups here, to be judged: .csv, .xlsx or .jsonl.",
        metavar="FILE")] = None
    update: Annotated[bool, Opt(
        "Keep the numbers in GROUPS, and add what changed to GROUPS.changes.jsonl.")] = False
    follow: Annotated[bool, Opt(
        "Update whenever the corpora change, until Ctrl-C.", "--follow -f")] = False
    explain: Annotated[bool, Opt("Write what holds each group together to GROUPS.explain.jsonl.")] = False
    encoder: Annotated[str | None, Opt(
        "An encoder that also finds pairs [default: the index's own, if it has one].", metavar="NAME|PATH",
        complete="encoders")] = None
    seed: Annotated[int, Opt("Random seed of the samples.", low=0)] = 0
    columns: "Columns | None" = None
    progress: "Progress | None" = None
# fmt: on


def _numbers(option: str, values: Sequence[str]) -> dict[str, float]:
    numbers = {}
    for value in values:
        name, _, number = value.rpartition("=")
        try:
            numbers[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"`{option}` {value}: write `{option}` FIELD=NUMBER")
    return numbers
