"""The Python of docs/judgements.md and docs/spreadsheets.md runs as it is printed."""

import re
from pathlib import Path

import pytest

from tests.helpers import ROOT


@pytest.mark.parametrize("page", ["judgements", "spreadsheets"])
def test_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("posts.csv").write_bytes("Inhalt;Datum\ncafé im Süden;02.03.2026 14:05\n".encode("cp1252"))
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL
    )
    names: dict[str, object] = {}
    exec(compile(code, page, "exec"), names)
    expected = {
        "judgements": "()",
        "spreadsheets": "cp1252 ; {'Datum': 'date', 'Inhalt': 'text'} ['%d.%m.%Y %H:%M']",
    }
    assert capsys.readouterr().out.strip() == expected[page]
