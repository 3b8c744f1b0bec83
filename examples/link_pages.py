"""Link French pages to English ones with a dictionary. `linker link` does the same for files."""

import tempfile
from pathlib import Path

from linker.corpora.dictionaries import read_dictionary
from linker.crosslingual.methods import link
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import Task

french = Pages(
    ("f1", "f2", "f3"),
    ("Le volcan est proche de la ville.", "Le roi a perdu la guerre.", "Le pont traverse le fleuve."),
    language("fr"),
)
english = Pages(
    ("e1", "e2", "e3"),
    ("The bridge crosses the river.", "The volcano is close to the city.", "The king lost the war."),
    language("en"),
)
words = "volcan volcano\nville city\nroi king\nguerre war\npont bridge\nfleuve river\nproche close\n"

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "fr-en.tsv"
    path.write_text(words.replace(" ", "\t"), encoding="utf-8")
    result = link(Task(french, english, (read_dictionary(path),)), "dictionary")

for source, targets in zip(french.ids, result.candidates.targets, strict=True):
    print(source, "→", english.ids[targets[0]])
