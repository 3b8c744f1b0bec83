"""The code layout: files, rooms and the arrows between them, from the imports (`make house` prints it)."""

import ast
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[1]
Graph = dict[Path, dict[Path, int]]
R = TypeVar("R", bound=Hashable)


def files(folder: str) -> list[Path]:
    """Return the Python files below a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every absolute module a file imports, including imports inside functions and for typing."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def room(path: Path) -> str:
    """Return the room of a file: `indexes`, or a folder of `linker` with all its contents; "" for `linker` itself."""
    package, inner, *rest = path.relative_to(ROOT).parts
    return package if package == "indexes" else f"{package}/{inner}" if rest else ""


@functools.cache
def graph() -> Graph:
    """Return which files each file imports and on which line; imports inside functions and for typing count."""
    paths = [*files("indexes"), *files("linker")]
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }
    found: Graph = {path: {} for path in paths}
    for path in paths:
        names = dict(imports(path))
        # `from package import module` imports the module; the package only if it takes a name defined there
        of_names = {name.rpartition(".")[0] for name in names if name not in modules}
        of_modules = {name.rpartition(".")[0] for name in names if name in modules}
        for name, line in names.items():
            if modules.get(name, path) != path and (name in of_names or name not in of_modules):
                found[path][modules[name]] = line
    return found


def arrows(of: Callable[[Path], R], found: Graph) -> dict[R, set[R]]:
    """Return which rooms each room imports; a package's `__init__` only re-exports names from its files."""
    rooms: dict[R, set[R]] = {}
    for path, others in found.items():
        own = rooms.setdefault(of(path), set())
        if path.name != "__init__.py":
            own |= {of(other) for other in others} - {of(path)}
    return rooms


def floors(rooms: Mapping[R, set[R]]) -> int:
    """Return the length of the longest chain of rooms that each import the next; cycles are not allowed."""

    @functools.cache
    def height(room: R) -> int:
        return 1 + max(map(height, rooms[room]), default=0)

    return max(map(height, rooms))


def both_ways(rooms: Mapping[R, set[R]]) -> int:
    """Return how many pairs of rooms import each other."""
    return sum(room in rooms[other] for room, others in rooms.items() for other in others) // 2


def lines(folder: str, suffix: str = ".py") -> int:
    """Return the number of lines in the files below a folder."""
    return sum(path.read_bytes().count(b"\n") for path in (ROOT / folder).rglob(f"*{suffix}"))


def figures() -> dict[str, tuple[int, str]]:
    """Return, by name, the current figures and their targets."""
    product = [*files("indexes"), *files("linker")]
    rooms = arrows(room, {path: others for path, others in graph().items() if room(path)})
    return {
        "product lines": (lines("indexes") + lines("linker"), "≤ 56,000"),
        "product files": (len(product), ""),
        "lines of C": (lines("indexes", ".c"), ""),
        "benchmark lines": (lines("benchmarks"), "≤ 10,000"),
        "test lines": (lines("tests"), "≤ 40,000"),
        "rooms": (len(rooms), "≤ 16"),
        "arrows between them": (sum(map(len, rooms.values())), "≤ 110"),
        "rooms that import each other": (both_ways(rooms), "0"),
        "floors": (floors(rooms), "≤ 8"),
    }


def map_of_rooms() -> Iterator[str]:
    """Yield a line for each package, from the first line of its docstring."""
    for path in sorted(p for name in ("indexes", "linker") for p in files(name) if p.name == "__init__.py"):
        folder = path.parent.relative_to(ROOT)
        if len(folder.parts) == 1 and folder.name == "linker":
            continue
        sentence = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        inner = len(folder.parts) > (1 if folder.parts[0] == "indexes" else 2)
        yield f"{'  - ' if inner else '- '}`{folder}`: {sentence}"


def main() -> None:
    print("\n".join(map_of_rooms()), end="\n\n")
    print(f"{'':40}{'now':>8}   target")
    for name, (now, target) in figures().items():
        print(f"{name:40}{now:8,}   {target}")


if __name__ == "__main__":
    main()
