"""The result of an evaluation: means by measure, values by topic, and output in trec_eval's format."""

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from indexes.dtypes import BoolArray, Float64Array
from linker.base.terminal import quantity
from linker.evaluation.names import Measure, parse

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, float]):
    """A mapping from measures to means, by either spelling: `result["recip_rank"]`, `result["MRR"]`.

    `measures` are in trec_eval's order. `topics`: ids of the judged topics, bytes [t], in byte order (`topic_ids`: as
    strings); `answered`: flags [t]; `per_topic`: measure → float64 [t]; `run_name`: the sixth column of the run's last
    line. `complete`: whether means are over all judged topics; `ignored`: number of topics of the run without
    judgements. Computed on request only: `bounds` and `intervals`, measure → (low, high), and `tied`, the numbers of
    (documents, topics). `undefined`: AUC → number of topics without a value. Raises InputError for an unknown measure.
    """

    measures: tuple[Measure, ...]
    means: Mapping[str, float]
    topics: npt.NDArray[np.bytes_]
    answered: BoolArray
    per_topic: Mapping[str, Float64Array]
    run_name: str
    complete: bool
    ignored: int = 0
    bounds: Mapping[str, Interval] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    undefined: Mapping[str, int] = field(default_factory=dict)
    tied: tuple[int, int] | None = None

    def __getitem__(self, measure: str) -> float:
        if measure in self.means:
            return self.means[measure]
        return self.means[str(parse([measure])[0])]

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)

    @property
    def num_topics(self) -> int:
        """Number of judged topics."""
        return len(self.topics)

    @cached_property
    def topic_ids(self) -> list[str]:
        """Ids of the judged topics, in byte order."""
        return [str(t, "utf-8", "surrogateescape") for t in self.topics.tolist()]

    @property
    def num_answered(self) -> int:
        """Number of judged topics for which the run has a document."""
        return int(np.count_nonzero(self.answered))

    @cached_property
    def _place(self) -> dict[str, int]:
        return {topic: i for i, topic in enumerate(self.topic_ids)}

    def topic(self, topic_id: str) -> dict[str, float]:
        """Return one topic's values by measure name. Raises KeyError if the topic has no judgements."""
        at = self._place[topic_id]
        return {name: float(column[at]) for name, column in self.per_topic.items()}

    def coverage(self) -> str:
        """Return a sentence on how many judged topics the run answers."""
        scope = "all judged topics" if self.complete else "answered topics only"
        are = "is" if self.ignored == 1 else "are"
        extra = f"; {quantity(self.ignored, 'topic')} of the run {are} not judged" if self.ignored else ""
        judged = quantity(self.num_topics, "judged topic")
        return f"{self.num_answered} of {judged} answered; averaged over {scope}{extra}"

    def text(self, *, per_topic: bool = False, summary: bool = True) -> str:
        """Return trec_eval's output, byte for byte; `per_topic` is -q, `summary=False` is -n.

        Figures that trec_eval lacks (bounds, intervals, ties, undefined topics) follow in the same three columns.
        """
        lines = list(self._topic_lines()) if per_topic else []
        if summary:
            lines += [self._summary_line(measure) for measure in self.measures]
            lines += self._extra_lines()
        return "".join(lines)

    def _summary_line(self, measure: Measure) -> str:
        if measure.definition.summary == "name":
            return _line("runid", "all", self.run_name)
        return _line(str(measure), "all", _format(measure, self.means[str(measure)]))

    def _extra_lines(self) -> Iterator[str]:
        for suffixes, pairs in ((("low", "high"), self.bounds), (("ci_low", "ci_high"), self.intervals)):
            for name, pair in pairs.items():
                yield from (
                    _line(f"{name}_{s}", "all", f"{v:6.4f}") for s, v in zip(suffixes, pair, strict=True)
                )
        for name, count in self.undefined.items():
            yield _line(f"{name}_undefined", "all", str(count))
        if self.tied is not None:
            yield _line("tied_documents", "all", str(self.tied[0]))
            yield _line("tied_topics", "all", str(self.tied[1]))

    def _topic_lines(self) -> Iterator[str]:
        shown = [m for m in self.measures if m.definition.by_topic]
        columns = [(m, str(m), self.per_topic[str(m)].tolist()) for m in shown]
        for at in np.flatnonzero(self.answered).tolist():
            for measure, name, column in columns:
                yield _line(name, self.topic_ids[at], _format(measure, column[at]))

    def to_dict(self, *, per_topic: bool = False) -> dict[str, Any]:
        """Return a JSON-serialisable dictionary, with the topics' values if `per_topic`; NaN becomes None."""
        data: dict[str, Any] = {
            "run": self.run_name,
            "topics": self.num_topics,
            "answered": self.num_answered,
            "ignored": self.ignored,
            "complete": self.complete,
            "measures": {name: _plain(value) for name, value in self.means.items()},
        }
        for name in ("undefined", "bounds", "intervals"):
            if getattr(self, name):
                data[name] = dict(getattr(self, name))
        if self.tied is not None:
            data["tied"] = {"documents": self.tied[0], "topics": self.tied[1]}
        if per_topic:
            data["per_topic"] = {
                topic: {"answered": bool(done), **{n: _plain(float(c[i])) for n, c in self.per_topic.items()}}
                for i, (topic, done) in enumerate(zip(self.topic_ids, self.answered, strict=True))
            }
        return data

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(str(m))}</td><td style='text-align:right'>"
            f"{_format(m, self.means[str(m)]).strip()}</td></tr>"
            for m in self.measures
            if str(m) in self.means
        )
        caption = html.escape(f"{self.run_name}: {self.coverage()}")
        return f"<table><caption>{caption}</caption><tr><th>measure</th><th>value</th></tr>{rows}</table>"

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{m}={_format(m, self.means[str(m)]).strip()}" for m in self.measures if str(m) in self.means
        )
        return f"<Evaluation {shown} ({self.coverage()})>"


def _line(name: str, topic: str, value: str) -> str:
    return f"{name:<22}\t{topic}\t{value}\n"


def _format(measure: Measure, value: float) -> str:
    return f"{value:.0f}" if measure.definition.summary == "count" else f"{value:6.4f}"


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value
