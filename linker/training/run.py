"""Train a model folder from a training file: the work of `linker train`."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from indexes.dtypes import Float32Array
from indexes.interface import Document
from linker.base.errors import ConfigError, InputError
from linker.corpora import read_corpus, read_queries
from linker.encoders import folder as folders
from linker.encoders.configs import BagConfig
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Tokenizer
from linker.evaluation.reading.judgements import merged_qrels
from linker.training import held_back
from linker.training.batches import Pairs
from linker.training.config import EncoderConfig, TrainConfig, TrainingConfig
from linker.training.loop import device_of, train
from linker.training.parallel import World, join, leave
from linker.training.retrieval import dev_sample, mine_negatives
from linker.training.teacher import Teacher, ask
from linker.training.vectors import start_vectors

MEAN_LENGTH = 2048  # tokens per text that the mean of word vectors encodes: with only 512, MRR drops by .05
Log = Callable[[str], None]


def silent(message: str) -> None:
    """Log nothing."""


def run(config: TrainConfig, *, resume: bool = False, log: Log = silent) -> Path:
    """Train as `config` specifies and return the model's folder.

    With `resume`, continue from the checkpoint in the folder, if there is one. `log` receives a line on each step and
    on anomalies in the data. Under torchrun, processes share the work, and the first one logs. Raises LinkerError if
    the data, the settings or the output folder are wrong, or the loss is not finite; MissingExtraError if an extra is
    missing.
    """
    held_back.check(config)
    out, device = config.output.path, device_of(config.training.device)
    world = join(device)
    log = log if world.first else silent
    try:
        resumes = resume and (out / "training/checkpoint.safetensors").exists()
        if world.first:
            _check_folder(out, resume)
        log(f"device: {device}")
        pairs, dev = read_pairs(config, log)
        world.wait()
        if resumes:
            encoder = folders.load(out)
        else:
            log(f"word vectors: {config.data.word_vectors}")
            encoder = _start(config, pairs, log, resume=resume)
        if config.training.hard_negatives:
            log("hard negatives: searching with BM25")
            pairs = dataclasses.replace(
                pairs, negatives=mine_negatives(pairs, config.training.negatives_depth)
            )
        if config.training.teacher:
            log(f"teacher: encoding with {config.training.teacher}")
        teacher = _teacher(config, pairs, world)
        log(f"training: {encoder.kind}, epochs = {config.training.epochs}")
        train(encoder, pairs, dev, config.training, out, teacher=teacher, resume=resumes)
    finally:
        leave()
    return out


def _start(config: TrainConfig, pairs: Pairs, log: Log, *, resume: bool) -> TextEncoder:
    """Return the encoder to train, with its initial word vectors and, learned from held-back links, its key inputs."""
    training = config.training
    tokenizer, start = start_vectors(config.data, joined(pairs), training.seed)
    vectors = start
    if training.mean_epochs:
        log(f"word vectors: learning as a mean, mean_epochs = {training.mean_epochs}")
        vectors = learn_as_mean(tokenizer, start, pairs, config, resume=resume)
    encoder = build_encoder(config.encoder, tokenizer, vectors, training.seed)
    count_documents(encoder, pairs.documents)
    if training.held_back:
        log(f"key inputs: learning from links held back, held_back = {training.held_back}")
        seen, rest = held_back.halves(pairs, training.held_back, training.seed)
        part = learn_as_mean(tokenizer, start, seen, config, resume=resume, name="mean-of-part")
        held_back.learn(encoder, part, rest, training)
    return encoder


def _check_folder(out: Path, resume: bool) -> None:
    """Raise InputError if a folder holds anything that this training run did not create."""
    ours = folders.is_saved(out) or (out / "training").is_dir()
    if out.exists() and any(out.iterdir()) and not (resume and ours):
        reason = "holds a model: continue with `resume`, or" if ours else "exists and is not a model:"
        raise InputError(f"{out} {reason} give another output.path")


def learn_as_mean(
    tokenizer: Tokenizer,
    vectors: Float32Array,
    pairs: Pairs,
    config: TrainConfig,
    *,
    resume: bool,
    name: str = "mean",
) -> Float32Array:
    """Return the word vectors, float32 [size, d], after `mean_epochs` epochs in a bag of words.

    `vectors`, float32 [size, d], are the initial ones. The bag has its own checkpoint, in the folder
    training/`name`, and is a model itself: it reads whole texts, even if the actual encoder reads only part of them.
    """
    training = config.training
    longest = max(MEAN_LENGTH, config.encoder.max_length)
    bag = build_encoder(EncoderConfig(BagConfig(), longest), tokenizer, vectors, training.seed)
    settings = mean_settings(training, len(pairs.links))
    train(bag, pairs, None, settings, config.output.path / "training" / name, resume=resume)
    weight: Float32Array = (
        bag.module.get_submodule("embedding").get_parameter("weight").detach().cpu().numpy()
    )
    return weight


def mean_settings(training: TrainingConfig, links: int) -> TrainingConfig:
    """Return the settings for learning word vectors as a mean before a model's `training` on that many links."""
    size = min(512, max(32, links // 16))  # smaller batches for a small corpus, to have enough steps
    return TrainingConfig(
        temperature=0.07, lr=3e-3, max_length=2000, word_dropout=0.3, batch_size=size,
        cloze=2 * size if training.cloze else 0, cloze_window=training.cloze_window,
        epochs=training.mean_epochs, checkpoint_steps=training.checkpoint_steps,
        sparse=training.sparse, device=training.device, seed=training.seed,
    )  # fmt: skip


def _teacher(config: TrainConfig, pairs: Pairs, world: World) -> Teacher | None:
    """Encode with the teacher in the first process; the others read the saved vectors."""
    name, folder = config.training.teacher, config.output.path / "training" / "teacher"
    if name is None:
        return None
    teacher = ask(name, pairs, folder) if world.first else None
    world.wait()
    return teacher or ask(name, pairs, folder)


def joined(pairs: Pairs) -> list[str]:
    """Return every document followed by the training texts linked to it, from which word vectors are learned."""
    texts = [[document] for document in pairs.documents]
    for text, document in sorted(pairs.links):
        texts[document].append(pairs.texts[text])
    return ["\n".join(parts) for parts in texts]


def build_encoder(
    config: EncoderConfig, tokenizer: Tokenizer, vectors: Float32Array, seed: int
) -> TextEncoder:
    """Return an untrained encoder with word `vectors`, float32 [size, d]. Raises ConfigError for a wrong d."""
    torch.manual_seed(seed)
    try:
        model = dataclasses.replace(config.model, dim=vectors.shape[1])
    except ValueError as e:
        raise ConfigError(f"[encoder]: {e}") from None
    encoder = TextEncoder.new(model, tokenizer, config.max_length)
    with torch.no_grad():
        encoder.module.get_submodule("embedding").get_parameter("weight").copy_(torch.from_numpy(vectors))
    return encoder


def count_documents(encoder: TextEncoder, documents: Sequence[str]) -> None:
    """Give a star with `key_inputs` the idf of its tokens in `documents`; leave other models unchanged."""
    inputs = getattr(encoder.module, "key_inputs", None)
    if inputs is None:
        return
    ids = encoder.tokenizer.encode_batch(documents, encoder.max_length)
    distinct = [token for text in ids for token in set(text)]
    inputs.set_idf(np.bincount(distinct, minlength=encoder.tokenizer.size), len(documents))


def read_pairs(config: TrainConfig, log: Log = silent) -> tuple[Pairs, Pairs | None]:
    """Return the texts, documents and links for training and, if `config` names them, for dev.

    A link that a file repeats is read once, and `log` reports it. Raises InputError naming the file, and the line if
    there is one, if a file is malformed or its links are not in the data.
    """
    data = config.data
    log(f"reading {data.queries}")
    texts = {query.id: query.text for query in read_queries(data.queries)}
    log(f"{len(texts):,} queries; reading {data.documents}")
    documents = {}
    for record in read_corpus(data.documents):
        if not isinstance(record, Document):
            raise InputError(f"{record.path}:{record.line}: {record.reason}")
        documents[record.id] = record.full_text
    log(f"{len(documents):,} documents")
    pairs = [_link(path, texts, documents, log) for path in (data.train, data.dev) if path is not None]
    dev = dev_sample(pairs[1], config.training.dev_documents) if len(pairs) > 1 else None
    return pairs[0], dev


def _link(path: Path, texts: Mapping[str, str], documents: Mapping[str, str], log: Log) -> Pairs:
    text_rows, document_rows = ({id_: row for row, id_ in enumerate(x)} for x in (texts, documents))
    links = []
    qrels = merged_qrels([path], lambda message: log(f"warning: {message}"))
    linked = ((q, d) for q, grades in qrels.items() for d, grade in grades.items() if grade > 0)
    for query, document in linked:
        if query not in text_rows or document not in document_rows:
            missing = f"query {query!r}" if query not in text_rows else f"document {document!r}"
            raise InputError(f"{path} links to the {missing}, which is not in the data")
        links.append((text_rows[query], document_rows[document]))
    if not links:
        raise InputError(f"{path} holds no link with a positive grade")
    log(f"{len(links):,} links in {path}")
    return Pairs(list(texts.values()), list(documents.values()), links)
