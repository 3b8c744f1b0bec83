"""Pydantic fields for requests and tools' arguments, derived from the records that declare the options."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from linker.base.options import describe
from linker.corpora.records import Columns, UnusableError, make_document


class Model(BaseModel):
    """A body, in which unknown fields are errors: a misspelt option must not be ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def check_usable(record: dict[str, Any]) -> None:
    """Raise ValueError unless a text can be linked: jobs read texts as a corpus, which leaves out unusable records."""
    try:
        make_document(record, Columns())
    except UnusableError as e:
        raise ValueError(str(e)) from None


def option(record: type[Any], name: str, **more: Any) -> Any:
    """Return the field for an option of a record: its default, bounds and description, overridden by `more`."""
    return Field(describe(record, name)[0].default, **_about(record, name, more))


def argument(record: type[Any], name: str, **more: Any) -> Any:
    """Return the same field as `option`, for `Annotated`: without the default."""
    return Field(**_about(record, name, more))


def _about(record: type[Any], name: str, more: dict[str, Any]) -> dict[str, Any]:
    found, text = describe(record, name)
    return {"description": text, "ge": found.about.low, "le": found.about.high, **more}
