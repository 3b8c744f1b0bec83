"""`linker doctor`."""

from typing import Annotated

from linker.base.options import Opt
from linker.base.terminal import AsJson, print_result


def doctor(
    elasticsearch: Annotated[str | None, Opt(
        "Elasticsearch server to check [default: the first of $LINKER_ELASTIC_URL, or http://127.0.0.1:9200]",
        metavar="URL")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show installed packages, hardware features and servers.

    Example: linker doctor --json
    """
    from linker.cli.checking import examine, render

    report = examine(elasticsearch)
    print_result(report, render(report), as_json)
