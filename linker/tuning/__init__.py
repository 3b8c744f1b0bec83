"""Choosing how an index is searched, on judged queries: `linker index tune`."""

from linker.tuning.choice import Lead, Tuning, tune
from linker.tuning.measures import MEASURES, find_relevant
from linker.tuning.settings import SearchSetting, fusions

__all__ = ["MEASURES", "Lead", "SearchSetting", "Tuning", "find_relevant", "fusions", "tune"]
