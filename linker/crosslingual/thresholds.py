"""The least probability of a link that is kept: as given, and as a promised precision requires."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from linker.crosslingual.ranking.fitting import Fitted
from linker.crosslingual.task import Options
from linker.logs import logger
from linker.probability.promise import promise


def least_probability(fitted: Fitted, options: Options) -> tuple[float, dict[str, Any]]:
    """Return the threshold on P(link) by `options`, and a record of it and of the share of pages that are linked.

    A promised precision is tested on links that were held out, mixed with lists without their targets so that the
    share of linked pages is that of the pages to link (Learn then Test). Where no threshold passes, none is kept.
    """
    source = "estimated" if options.expected_linked is None else "expected"
    record: dict[str, Any] = {
        "min_probability": options.min_probability,
        "linked_share": {source: round(fitted.share, 4)},
    }
    if options.precision is None or fitted.held is None:
        return options.min_probability, record
    certified = promise(*fitted.held.mixture(fitted.share), options.precision)
    if certified is None:
        logger.warning(
            "no threshold on P(link) is certain to keep a precision of %g with these known links, so no page is "
            "linked: lower --precision, pass more links with --train, or use --min-probability",
            options.precision,
        )
        return math.inf, record | {"promise": {"precision": options.precision, "threshold": None}}
    logger.info("%s", certified)
    return max(options.min_probability, certified.threshold), record | {"promise": asdict(certified)}
