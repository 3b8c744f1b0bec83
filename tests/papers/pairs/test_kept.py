"""Append-only files of entries, as a crash or another program may leave them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.scoring.pairs.kept import KeptFile


def held(path: Path) -> list[Any]:
    """Return the entries read from the file."""
    found: list[Any] = []
    KeptFile(path, "words", lambda entry: found.append(entry["word"]))
    return found


@given(words=st.lists(st.text(), min_size=1, max_size=4), data=st.data())
def test_every_beginning_of_a_file_gives_back_its_whole_entries(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("kept") / "words.jsonl"
    KeptFile(path, "words", lambda entry: None).add({"word": word} for word in words)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    found = held(path)
    # An entry is whole even if only its line end is missing.
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]
    assert found == words[: sum(end <= cut for end in ends)]
    assert path.read_bytes() == b"".join(line + b"\n" for line in whole.splitlines()[: len(found)])


@pytest.mark.parametrize("content", ["other", "other\n", '{"word"', '["a"]', '{"key": 1}', "{\n  1"])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "words.jsonl"
    path.write_text(content, encoding="utf-8")
    if content == '{"word"':
        assert held(path) == []
        assert path.read_bytes() == b""
        return
    with pytest.raises(InputError, match="holds no words: name another file for them"):
        held(path)
    assert path.read_text(encoding="utf-8") == content


def test_a_damaged_entry_costs_only_itself_and_a_folder_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    path.write_text('{"word": "a"}\n{"word: 1\n{"other": 1}\n{"word": "b"}\n', encoding="utf-8")
    assert held(path) == ["a", "b"]
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
        held(tmp_path)
    kept = KeptFile(tmp_path / "new" / "words.jsonl", "words", lambda entry: None)
    (tmp_path / "new").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot write the words file"):
        kept.add([{"word": "a"}])
