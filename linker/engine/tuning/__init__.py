"""Choose how an index is searched, by means of judged queries: `linker index tune`."""

from linker.engine.tuning.choice import Tuning, tune
from linker.engine.tuning.measures import MEASURES, Lead, find_relevant
from linker.engine.tuning.parameters import GRID, Bm25Search
from linker.engine.tuning.settings import SearchSetting, fusions

__all__ = [
    "GRID",
    "MEASURES",
    "Bm25Search",
    "Lead",
    "SearchSetting",
    "Tuning",
    "find_relevant",
    "fusions",
    "tune",
]
