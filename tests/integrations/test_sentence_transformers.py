"""A `linker train` model in sentence-transformers: the same vectors, and a round trip through its own saving."""

from pathlib import Path

import numpy as np
import pytest
import torch

from linker.base.errors import InputError
from linker.encoders.configs import BagConfig, ModelConfig, StarConfig
from linker.encoders.folder import save
from linker.encoders.loading import load_encoder
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer

# Modules that load sentence-transformers (eight seconds) are imported in the tests that need them.
TEXTS = ["a b c", "", "d", "unknown words only", "a " * 30, "c b a d e f g"]
STAR = StarConfig(dim=8, heads=2, head_dim=4, residual=True, pre_norm=True, contrast=1.0, key_inputs=True)


def saved(config: ModelConfig, folder: Path) -> TextEncoder:
    torch.manual_seed(0)
    encoder = TextEncoder.new(config, WordTokenizer(Vocabulary.of("abcdefg")), max_length=20)
    for parameter in encoder.module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    save(encoder, folder)
    return encoder


@pytest.mark.parametrize("config", [STAR, BagConfig(8, projection=5)], ids=["star", "bag"])
def test_a_saved_model_loads_by_its_path_and_saves_itself(config: ModelConfig, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    from linker.integrations.sentence_transformers import LinkerModule, open_model

    encoder = saved(config, tmp_path / "m")
    expected = encoder.encode(TEXTS)
    model = SentenceTransformer(str(tmp_path / "m"), trust_remote_code=True, device="cpu")
    assert isinstance(model[0], LinkerModule)
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(open_model(tmp_path / "m").encode(TEXTS), expected, atol=1e-6)
    assert (model.get_embedding_dimension(), model.max_seq_length) == (encoder.dim, 20)
    similarity = model.similarity(expected, expected).numpy()
    np.testing.assert_allclose(similarity, expected @ expected.T, atol=1e-5)

    model.save_pretrained(str(tmp_path / "again"))
    assert load_encoder(tmp_path / "again").fingerprint == encoder.fingerprint
    again = SentenceTransformer(str(tmp_path / "again"), trust_remote_code=True, device="cpu")
    np.testing.assert_array_equal(again.encode(TEXTS), model.encode(TEXTS))


def test_a_prompt_a_pair_and_a_pickle(tmp_path: Path) -> None:
    from linker.integrations.sentence_transformers import open_model

    encoder = saved(BagConfig(8), tmp_path / "m")
    model = open_model(tmp_path / "m")
    # a prompt is a prefix of the text
    np.testing.assert_allclose(model.encode(["b c"], prompt="a "), encoder.encode(["a b c"]), atol=1e-6)
    with pytest.raises(InputError, match="strings only"):
        model.encode([("a", "b")])
    with pytest.raises(InputError, match="no pickles"):
        model.save_pretrained(str(tmp_path / "p"), safe_serialization=False)


def test_gradients_reach_the_weights_and_the_change_is_saved(tmp_path: Path) -> None:
    from linker.integrations.sentence_transformers import open_model

    encoder = saved(STAR, tmp_path / "m")
    model = open_model(tmp_path / "m")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    vectors = model(model.preprocess(["a b c", "d e"]))["sentence_embedding"]
    (vectors[0] @ vectors[1]).backward()
    optimizer.step()
    model.save_pretrained(str(tmp_path / "trained"))
    trained = load_encoder(tmp_path / "trained")
    assert trained.fingerprint != encoder.fingerprint
    one, other = trained.encode(["a b c", "d e"])
    assert one @ other < (vectors[0] @ vectors[1]).item(), "the step was towards a smaller cosine"


def test_without_trust_the_library_says_what_it_needs(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    saved(BagConfig(8), tmp_path / "m")
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path / "m"))
