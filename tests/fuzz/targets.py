"""All targets by name."""

from types import ModuleType

from tests.fuzz import compiled, corpora, judgements, models, store, vectors, words
from tests.fuzz.engine import Target

PARTS: tuple[ModuleType, ...] = (store, compiled, models, vectors, judgements, corpora, words)
TARGETS: dict[str, Target] = {target.name: target for part in PARTS for target in part.TARGETS}
assert len(TARGETS) == sum(len(part.TARGETS) for part in PARTS), "two targets of one name"
