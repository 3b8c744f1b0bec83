"""What MkDocs calls while it builds the site: generated pages, and links that lead out of docs/."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from docs.hooks.commands import commands_page
from docs.hooks.names import names_page, rooms_page
from docs.hooks.routes import routes_page

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)]*)?\)")
MARKER = re.compile(r"^<!-- /?(?:results|tested)\b.*? -->$|<!-- /?=[\w.-]* -->", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Say in the header which version the pages describe, and where its repository is, if the package says so."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project.get("urls", {}).get("Repository", "")
    config.extra |= {"version": project["version"], "repository": repository}
    config.repo_url = repository or "changelog.html"  # without one, the theme would leave the place out
    config.copyright = f"{config.site_name} {project['version']} · {project['license']}"
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from the code and from files beside docs/."""
    pages = {
        "reference/commands.md": commands_page(),
        "reference/python.md": names_page(),
        "reference/rooms.md": rooms_page(),
        "reference/http.md": routes_page(),
        "changelog.md": changelog(),
    }
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Write links to files outside docs/ as their paths, and leave out the markers of rendered tables."""
    folder = (Path(config["docs_dir"]) / page.file.src_uri).parent
    text = MARKER.sub("", LINK.sub(lambda link: outside(link, folder), markdown))
    return text.replace(" ± ", "\u00a0±\u00a0")  # a figure stays on one line with its deviation


def outside(link: re.Match[str], folder: Path) -> str:
    """Return a link as it stands, or the path in the repository that it leads to where docs/ does not hold it."""
    target = (folder / link[2]).resolve()
    if not link[2].startswith("..") or target.is_relative_to(ROOT / "docs") or not target.exists():
        return link[0]
    path = f"`{target.relative_to(ROOT)}`"
    return path if link[1].strip("`") == path.strip("`") else f"{link[1]} ({path})"


def changelog() -> str:
    """Return CHANGELOG.md as a page of the site."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
