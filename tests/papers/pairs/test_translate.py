"""Translators: scripted, a program, a tiny model; and which pairs back-translation keeps."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from linker.base.errors import InputError
from linker.scoring.pairs.data import Pair
from linker.scoring.pairs.sts.cross_training import augment
from linker.scoring.pairs.translate import (
    CommandTranslator,
    ModelTranslator,
    ScriptedTranslator,
    Translator,
    back_translate,
    load_translator,
)
from linker.scoring.pairs.translations import BATCH, ByLanguage, KeptTranslator, read_translators

TABLE = "en\tfr\ta cat\tun chat\nfr\ten\tun chat\tone cat\n"
LINES = (
    '{"source": "en", "target": "fr", "text": "a cat", "translation": "un chat"}\n\n'
    '{"source": "fr", "target": "en", "text": "un chat", "translation": "one cat"}\n'
)


class Turned:
    """Reverses the words on the way there and adds "indeed" on the way back; makes one text far too long."""

    calls = 0

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        self.calls += 1
        if target == "fr":
            return [" ".join(reversed(text.split())) for text in texts]
        back = [" ".join(reversed(text.split())) for text in texts]
        return [b * 3 if "long" in b else b if "same" in b else f"{b} indeed" for b in back]


@pytest.mark.parametrize(("name", "content"), [("t.tsv", TABLE), ("t.jsonl", LINES)])
def test_scripted_translations_come_from_either_file(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    translator = load_translator(tmp_path / name)
    assert isinstance(translator, Translator)
    assert back_translate(translator, ["a cat", "", "a cat"], "en", "fr") == ["one cat", None, "one cat"]
    with pytest.raises(InputError, match=f"{name} has no en → fr translation of 'a dog'"):
        translator.translate(["a dog"], "en", "fr")


def test_a_line_without_all_four_is_named(tmp_path: Path) -> None:
    for name, line in (("t.tsv", "en\tfr\ta\n"), ("t.jsonl", '{"source": "en"}\n')):
        (tmp_path / name).write_text("\n" + line, encoding="utf-8")
        with pytest.raises(InputError, match=rf"{name}:2: expected"):
            ScriptedTranslator.read(tmp_path / name)


def test_texts_that_are_identical_or_of_wild_lengths_are_dropped_and_labels_are_copied() -> None:
    translator = Turned()
    texts = ["the same", "a long text", "a cat on a mat", "The Same"]
    assert back_translate(translator, texts, "en", "fr") == [
        None,
        None,
        "a cat on a mat indeed",
        "The Same indeed",
    ]
    assert translator.calls == 2
    pairs = [Pair("1", "a cat on a mat", "the same", 3.0), Pair("2", "the same", "the same", 5.0)]
    assert augment(pairs, Turned(), "en", "fr") == [Pair("1+fr", "a cat on a mat indeed", "the same", 3.0)]


def test_a_program_translates_line_by_line() -> None:
    translator = CommandTranslator("sed 's/^/{source}>{target} /'")
    assert translator.translate(["a\nb", "c"], "en", "fr") == ["en>fr a b", "en>fr c"]
    assert load_translator("command:cat").translate([], "en", "fr") == []


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("no-such-program", "no program"),
        ("false", "failed with status 1"),
        ("head -n 1", "1 lines for 2 texts"),
    ],
)
def test_a_program_that_does_not_translate_is_named(command: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        CommandTranslator(command).translate(["a", "b"], "en", "fr")


def test_a_model_that_cannot_be_had_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ready translations"):
        ModelTranslator("no/such-model-here").translate(["a"], "en", "fr")


@pytest.fixture(scope="module")
def tiny_m2m100(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an M2M100 with random weights and a word tokenizer that has its language tokens."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import M2M100Config, M2M100ForConditionalGeneration, PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", "__en__", "__fr__", "un", "chat", "a", "cat"]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        additional_special_tokens=["__en__", "__fr__"],
    )  # fmt: skip
    config = M2M100Config(
        vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("m2m100")
    M2M100ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_tiny_m2m100_translates_in_batches_of_any_size(tiny_m2m100: Path) -> None:
    texts = ["a cat", "un chat a", "cat"]
    whole = ModelTranslator(str(tiny_m2m100), max_length=8).translate(texts, "en", "fr")
    assert len(whole) == 3
    assert ModelTranslator(str(tiny_m2m100), batch_size=1, max_length=8).translate(texts, "en", "fr") == whole
    with pytest.raises(InputError, match=r"does not support the language 'xx'; it supports en, fr"):
        load_translator(tiny_m2m100).translate(texts, "en", "xx")


def test_m2m100_with_its_own_tokenizer(tiny_m2m100: Path, tmp_path: Path) -> None:
    """The published models come with a SentencePiece vocabulary, next to which all hundred languages are numbered."""
    import sentencepiece
    import torch
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "le chat est sur le tapis"]),
        model_writer=written, vocab_size=40, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (tmp_path / "pieces").write_bytes(written.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    known = ["<s>", "<pad>", "</s>", "<unk>", *map(pieces.id_to_piece, range(3, pieces.get_piece_size()))]
    (tmp_path / "vocabulary.json").write_text(json.dumps({piece: i for i, piece in enumerate(known)}))
    M2M100Tokenizer(str(tmp_path / "vocabulary.json"), str(tmp_path / "pieces")).save_pretrained(
        tmp_path / "m"
    )
    config = M2M100Config.from_pretrained(tiny_m2m100, vocab_size=len(known) + 120, init_std=1.0)
    torch.manual_seed(0)
    M2M100ForConditionalGeneration(config).save_pretrained(tmp_path / "m")
    translator = ModelTranslator(str(tmp_path / "m"), max_length=8)
    french, german = (translator.translate(["the cat", "a mat"], "en", target) for target in ("fr", "de"))
    assert len(french) == 2
    assert french != german
    assert not any("__" in text for text in french)  # the language token is not part of the translation
    with pytest.raises(InputError, match="does not support the language 'tlh'"):
        translator.translate(["the cat"], "en", "tlh")


def test_a_dictionary_translates_word_by_word_in_both_directions_and_many_scripts(tmp_path: Path) -> None:
    (tmp_path / "de-en.tsv").write_text("haus\thouse\nhaus\thome\nhund\tdog\n", encoding="utf-8")
    translator = load_translator(f"dictionary:{tmp_path}/{{source}}-{{target}}.tsv")
    assert translator.translate(["Das Haus, ein hund!", ""], "de", "en") == ["Das House, ein dog!", ""]
    assert translator.translate(["my house"], "en", "de") == ["my haus"]
    with pytest.raises(InputError, match=r"fr-en\.tsv"):
        translator.translate(["maison"], "fr", "en")
    (tmp_path / "zh-en.tsv").write_text(
        "国家\tstate\n统计\tstatistics\n统计局\tbureau\n局\toffice\n", encoding="utf-8"
    )
    (tmp_path / "tr-en.tsv").write_text("ışık\tlight\niz\ttrack\n", encoding="utf-8")
    translator = load_translator(f"dictionary:{tmp_path}/{{source}}-{{target}}.tsv")
    chinese = translator.translate(["GDP国家统计局，新统计 5", "好"], "zh", "en")
    assert chinese == ["GDP state bureau ， 新 statistics  5", "好"]
    assert translator.translate(["IŞIK, İz, ışık"], "tr", "en") == ["Light, Track, light"]


def test_translators_by_language_leave_other_languages_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(TABLE + "fr\ten\tun chien\ta dog\n", encoding="utf-8")
    names = read_translators([f"fr={tmp_path / 't.tsv'}"])
    translator = ByLanguage(names)
    assert translator.translate(["un chat", "un chien"], "fr", "en") == ["one cat", "a dog"]
    assert translator.translate(["ein Hund"], "de", "en") == ["ein Hund"]
    assert translator.translate(["a cat"], "en", "en") == ["a cat"]
    assert read_translators(["m2m100", "de=dictionary:a=b"]) == {"": "m2m100", "de": "dictionary:a=b"}
    with pytest.raises(InputError, match="two translators for de"):
        read_translators(["de=a", "de=b"])


def test_translations_are_kept_in_a_file_that_is_a_translator_itself(tmp_path: Path) -> None:
    inner = Turned()
    kept = KeptTranslator(inner, tmp_path / "kept.jsonl")
    assert kept.translate(["a b", "c d", "a b"], "en", "fr") == ["b a", "d c", "b a"]
    again = KeptTranslator(inner, tmp_path / "kept.jsonl")
    assert again.translate(["c d", "e f"], "en", "fr") == ["d c", "f e"]
    assert inner.calls == 2
    assert load_translator(tmp_path / "kept.jsonl").translate(["e f"], "en", "fr") == ["f e"]


class Interrupted(Turned):
    """Is interrupted in its third call, as by Ctrl-C."""

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        if self.calls == 2:
            raise KeyboardInterrupt
        return super().translate(texts, source, target)


def test_an_interrupted_run_keeps_the_batches_that_are_done(tmp_path: Path) -> None:
    texts = [f"{number} a" for number in range(3 * BATCH)]
    kept = tmp_path / "kept.jsonl"
    with pytest.raises(KeyboardInterrupt):
        KeptTranslator(Interrupted(), kept).translate(texts, "en", "fr")
    assert len(kept.read_bytes().splitlines()) == 2 * BATCH
    inner = Turned()
    translations = KeptTranslator(inner, kept).translate(texts, "en", "fr")
    assert translations == [f"a {number}" for number in range(3 * BATCH)]
    assert inner.calls == 1


def test_a_file_that_a_crash_cut_off_is_continued(tmp_path: Path) -> None:
    """The file is truncated at every byte; whole entries are kept, the rest are translated again."""
    path = tmp_path / "kept.jsonl"
    KeptTranslator(Turned(), path).translate(["a b", "c d"], "en", "fr")
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        assert KeptTranslator(Turned(), path).translate(["a b", "c d"], "en", "fr") == ["b a", "d c"], cut
        assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
