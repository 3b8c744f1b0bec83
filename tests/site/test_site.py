"""The site builds in strict mode, makes no external requests, and has every page in its navigation."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers import ROOT

PICTURES = 1024 * 1024  # bytes of all pictures
PICTURE = 150 * 1024  # bytes of one picture
FETCHED = re.compile(r'<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]*)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_no_page_asks_another_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not FETCHED.findall(page.read_text(encoding="utf-8")), page.name
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)", style.read_text(encoding="utf-8")), (
            style.name
        )


def test_every_command_is_in_the_reference(site: Path) -> None:
    from linker.cli.entry import app
    from linker.cli.registry import every

    page = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for command in every(app):
        assert f">linker {command}</code>" in page
    assert "Documents per query." in page


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    import linker

    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in linker.__all__:
        assert re.search(rf'id="[\w.]+\.{name}"', page), name


def test_every_field_of_a_dataclass_is_in_the_reference(site: Path) -> None:
    import dataclasses

    import linker

    page = re.sub(r"<[^>]+>", "", (site / "reference" / "python.html").read_text(encoding="utf-8"))
    for value in (getattr(linker, name) for name in linker.__all__):
        for field in dataclasses.fields(value) if dataclasses.is_dataclass(value) else ():
            assert re.search(rf"\b{field.name}: ", page), f"{value.__name__}.{field.name}"


@pytest.mark.parametrize(
    "name",
    ["InputError", "DamagedError", "Ledger", "Review", "read_corpus", "read_qrels", "LinkerVectorStore"],
)
def test_rooms_that_programs_use_are_in_the_reference(name: str, site: Path) -> None:
    page = (site / "reference" / "rooms.html").read_text(encoding="utf-8")
    assert re.search(rf'id="[\w.]+\.{name}"', page)


def test_every_page_says_which_version_it_describes(site: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for page in ("index.html", "reference/python.html"):
        assert f">{project['version']}</a>" in (site / page).read_text(encoding="utf-8")


def test_repository_is_linked_if_package_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jinja2 = pytest.importorskip("jinja2")
    pytest.importorskip("mkdocs")
    from docs.hooks import site as hooks

    project = (
        '[project]\nversion = "9.1"\nlicense = "MIT"\nurls = { Repository = "https://example.org/linker" }\n'
    )
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    config = hooks.on_config(SimpleNamespace(extra={}, site_name="linker"))
    environment = jinja2.Environment(autoescape=True)
    environment.filters["url"] = str
    template = environment.from_string(
        (ROOT / "docs" / "theme" / "partials" / "source.html").read_text(encoding="utf-8")
    )
    assert re.findall(r'href="(.*?)".*>(.*)</a>', template.render(config=config)) == [
        ("changelog.html", "9.1"),
        ("https://example.org/linker", "Repository"),
    ]


def test_a_copied_block_is_its_commands(site: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("needs Chromium: run .ci/browser")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((site / "tutorials" / "researcher.html").as_uri())
        page.locator(".highlight").first.hover()
        page.locator(".highlight button").first.click()
        page.evaluate(
            "() => { field = document.body.appendChild(document.createElement('textarea')); field.focus() }"
        )
        page.keyboard.press("Control+V")
        copied = page.evaluate("field.value").splitlines()
        browser.close()
    assert copied == [
        "python -m linker.demo.files news",
        "head -c 120 news/beir/queries.jsonl",
        "head -2 news/beir/qrels/test.tsv",
    ]


def test_every_route_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "http.html").read_text(encoding="utf-8")
    assert "POST /v1/search</code>" in page
    assert "GET /v1/indexes</code>" in page
    assert "problem details" in page.lower()


def test_lists_and_tables_are_rendered(site: Path) -> None:
    """Markdown that GitHub renders as a list or table can be a paragraph elsewhere."""
    for page in site.rglob("*.html"):
        text = re.sub(r"<pre\b.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for paragraph in re.findall(r"<p>(.*?)</p>", text, re.DOTALL):
            assert not re.search(r"^(?:- |\d+\. |\|.*\|$)", paragraph, re.MULTILINE), (
                f"{page.name}: {paragraph}"
            )


def test_every_extra_is_explained() -> None:
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for extra in extras.keys() - {"bench", "dev", "peers"}:
        assert f"`{extra}`" in page, extra


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}
    assert max(sizes.values()) <= PICTURE
    assert sum(sizes.values()) <= PICTURES
