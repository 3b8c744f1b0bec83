"""Names are nouns for values: a function has at most one bare participle or adverb among its variables."""

import ast
import itertools

from tests.house import ROOT, files

VAGUE = {
    "again", "alone", "apart", "asked", "awaited", "beside", "chosen", "done", "drawn", "found", "given", "gone",
    "held", "here", "kept", "left", "made", "meant", "named", "own", "place", "put", "said", "seen", "sent", "served",
    "shown", "taken", "there", "together", "told", "wanted",
}  # fmt: skip


def vague_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the vague names among a function's parameters and variables, inner functions included."""
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return (arguments | stored) & VAGUE


def test_two_vague_names_are_noticed() -> None:
    (function,) = ast.parse("def f(found):\n    kept = there = found").body
    assert isinstance(function, ast.FunctionDef) and vague_names(function) == {"found", "kept", "there"}


def test_no_function_has_two_vague_names() -> None:
    vague = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": sorted(names)
        for path in itertools.chain(*map(files, ("linker", "indexes", "benchmarks")))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(names := vague_names(node)) > 1
    }
    assert not vague, vague
