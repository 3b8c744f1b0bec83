"""A stand-in for an engine in exports."""

from indexes.interface import Document


class Corpus(dict[str, Document]):
    """Documents by id; a document shares a passage only with a seed whose title is Floods."""

    def document(self, id_: str) -> Document:
        return self[id_]

    def documents(self) -> list[Document]:
        return [*self.values()]

    def passage(self, query: str, text: str) -> tuple[int, int] | None:
        return (0, 6) if query.startswith("Floods") else None
