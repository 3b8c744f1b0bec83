"""An index to which texts can be added in memory, without a commit, for documents that arrive one by one."""

import copy
import dataclasses
from collections.abc import Sequence

import numpy as np

from indexes.collection import Collection
from indexes.hybrid import HybridIndex
from indexes.interface import RowArray
from indexes.rows import Rows
from indexes.text.bm25 import Bm25Index
from indexes.text.forward_index import ForwardIndex


class GrowingIndex:
    """A copy in memory of an index with a single BM25 index, `collection`; documents added to it are not written."""

    def __init__(self, collection: Collection) -> None:
        """Continue from `collection`, which stays as it is. Its documents and vectors are not copied."""
        assert isinstance(collection.text, Bm25Index)
        manifest, self._rows = collection.manifest, Rows()
        self._rows.restore(list(collection.rows.ids), collection.rows.dead)
        # Without paths, so that no file is deleted with a segment that is merged in memory.
        postings = [dataclasses.replace(segment, path=None) for segment in collection.text.segments]
        ordered = [dataclasses.replace(segment, path=None) for segment in collection.forward.segments]
        self._text = Bm25Index(manifest.analysis, None, self._rows, manifest.bm25, postings, building=False)
        self._forward = ForwardIndex(manifest.analysis, None, ordered, building=False)
        self.collection = copy.copy(collection)
        self.collection.rows, self.collection.text = self._rows, self._text
        self.collection.forward = self.collection.stored_forward = self._forward
        self.collection.hybrid = HybridIndex(self._rows, None, self._text, collection.hybrid.settings)

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> RowArray:
        """Add texts with new ids, and return their rows, int64 [n]. Raises DuplicateIdError, BadIdError."""
        first = len(self._rows.ids)
        self._text.add(ids, texts)
        self._text.commit()
        self._forward.add(texts)
        self._forward.commit()
        return np.arange(first, len(self._rows.ids))
