"""`linker explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from indexes.showing import one_line
from linker.base.options import Opt
from linker.base.terminal import AsJson, note, print_json

if TYPE_CHECKING:
    from linker.scoring.pairs.explaining import Attention, PairExplanation, TextExplanation

WIDTH = 18  # width of the token column
REMARK = "A weight shows what attention read; only the change in the cosine shows a token's effect."


def explain(
    model: Annotated[str, Opt("Name or path of an encoder.", "", metavar="MODEL")],
    text: Annotated[list[str], Opt("One of the texts A and B; give it twice.", "--text", metavar="TEXT")],
    head: Annotated[int | None, Opt("Also print this head's ring attention per token.", low=1)] = None,
    most: Annotated[int, Opt(
        "Print this many tokens per text, the most influential; 0: all.", "-n --tokens", low=0)] = 40,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Explain the cosine of two texts.

    Each token is left out in turn; for a star encoder, its sparse attention is also shown.

    Example: linker explain model --text "floods in Valencia"
    """
    if len(text) != 2:
        raise typer.BadParameter("give --text twice: the texts A and B")
    from linker.encoders.loading import load_encoder
    from linker.scoring.pairs.explaining import explain as run

    explanation = run(load_encoder(model), *text)
    if as_json:
        print_json(explanation.to_dict())
        return
    first, second = explanation.texts
    heads = [len(a.alphas) for a in first.attentions or second.attentions]
    if head is not None and heads and head > heads[0]:
        raise typer.BadParameter(f"--head {head}: the model has {heads[0]} heads")
    print(f"{model}: cosine {explanation.cosine:.4f}")
    for line in lines(explanation, head, most):
        print(line)
    note(
        REMARK
        if heads
        else f"Explained only by leaving out tokens: a {explanation.kind} encoder has no sparse attention."
    )


def lines(explanation: PairExplanation, head: int | None, most: int) -> Iterator[str]:
    """Yield the explanation of both texts as lines.

    `head` (from 1): the head whose ring attention is also shown; `most`: maximum tokens per text (0: all).
    """
    for name, part in zip("AB", explanation.texts, strict=True):
        yield ""
        yield f"{name}: {len(part.tokens)} tokens"
        positions = _weightiest(part, most)
        yield from _tokens(part, positions)
        if len(positions) < len(part.tokens):
            yield f"… {len(part.tokens) - len(positions)} more, which change the cosine less (--tokens 0: all)"
        for attention in part.attentions:
            yield from _heads(attention)
            if attention.name.endswith("ring") and head is not None:
                yield from _ring(attention, part, positions, head - 1)
        yield from _check(part)


def _weightiest(part: TextExplanation, most: int) -> list[int]:
    order = sorted(range(len(part.tokens)), key=lambda i: -abs(part.changes[i]))
    return sorted(order[: most or None])


def _tokens(part: TextExplanation, positions: list[int]) -> Iterator[str]:
    """Yield a row per token: change in the cosine, share, and the weights of each head of the last relay."""
    relays = [a for a in part.attentions if a.name.endswith("relay")]
    weights = relays[-1].weights[0] if relays else None
    title = f"  {relays[-1].name}, head by head; · is exactly 0" if relays else ""
    yield f"{'token':{WIDTH}} Δcosine{'  share' if part.shares is not None else ''}{title}"
    if weights is not None:
        yield f"{'(relay)':{WIDTH}} {'':7}{'':7}  {_cells(weights[0])}"
    for i in positions:
        share = "" if part.shares is None else f" {part.shares[i]:z6.3f}"
        cells = "" if weights is None else f"  {_cells(weights[1 + i])}"
        yield f"{one_line(part.tokens[i], WIDTH):{WIDTH}} {part.changes[i]:+z7.4f}{share}{cells}"


def _heads(attention: Attention) -> Iterator[str]:
    """Yield a row per head: α, its change in training, exact zeros; for a ring, also the mean weight per position."""
    ring = attention.name.endswith("ring")
    places = "".join(f"{place:>6}" for place in attention.places) if ring else ""
    yield f"{attention.name:{WIDTH}}   α    moved  exact zeros{'   ' if ring else ''}{places}"
    for number, (alpha, zeros) in enumerate(zip(attention.alphas, attention.zeros, strict=True)):
        share = f"{int(zeros)}/{attention.possible} = {zeros / attention.possible:.0%}"
        means = attention.weights[..., number].sum(0) / attention.inside.sum(0).clip(1)
        cells = f"   {_cells(means, 6)}" if ring else ""
        yield f"  head {number + 1:<{WIDTH - 7}} {alpha:.4f} {alpha - attention.start:+z.4f}  {share:>14}{cells}"


def _ring(attention: Attention, part: TextExplanation, positions: list[int], head: int) -> Iterator[str]:
    yield f"{attention.name}, head {head + 1}:".ljust(WIDTH) + "".join(f"{p:>6}" for p in attention.places)
    for i in positions:
        pairs = zip(attention.weights[i, :, head], attention.inside[i], strict=True)
        cells = "".join(_cells([w], 6) if inside else " " * 6 for w, inside in pairs)
        yield f"{one_line(part.tokens[i], WIDTH):{WIDTH}}{cells}"


def _check(part: TextExplanation) -> Iterator[str]:
    if part.attention is None:
        return
    yield f"The relay's weights differ from uniform ones by at most {part.unevenness:.3f}."
    attention = part.correlation(part.attention)
    if attention is None:
        yield "Rank correlation of attention and effect: too few tokens, or all equal."
        return
    share = part.correlation(None if part.shares is None else abs(part.shares))
    share_text = "" if share is None else f"; of the share's size {share:+.2f}"
    yield (
        f"Rank correlation with |Δcosine| over {len(part.tokens)} tokens: of the relay's mean weight "
        f"{attention:+.2f}{share_text}"
    )


def _cells(weights: object, width: int = 4) -> str:
    import numpy as np

    values = np.asarray(weights, dtype=float)
    texts = ("·" if w == 0 else f"{w:.2f}".removeprefix("0") for w in values)
    return "".join(f"{text:>{width}}" for text in texts)
