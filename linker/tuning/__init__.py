"""Choosing how an index is searched, on judged queries: `linker index tune`."""

from linker.tuning.choice import Tuning, tune
from linker.tuning.lead import Lead
from linker.tuning.measures import MEASURES, find_relevant
from linker.tuning.parameters import GRID, Bm25Search
from linker.tuning.settings import SearchSetting, fusions

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
