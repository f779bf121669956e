"""Dollars for tokens, from the price list that comes with `genai-prices`: offline, per model.

A model the list does not have has no price: the cost stays unknown, and a wrong guess never
reaches a marker. Importing the list takes a tenth of a second, so it waits until a run has ended.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from orchestrator.model.usage import UNKNOWN_USAGE, CostSource, Usage


class Call(NamedTuple):
    """One call of a model, or the sum of several where no more is known.

    Attributes:
        tokens_in: all prompt tokens, cache reads and writes included.
        tokens_out: all completion tokens, reasoning included.
    """

    model: str | None
    tokens_in: int
    tokens_out: int
    cache_read: int = 0
    cache_write: int = 0


def computed(calls: Sequence[Call], provider: str, at: datetime) -> Usage:
    """The sum of `calls`, priced as of `at`. One call without a price makes the cost unknown.

    Calls are priced one by one where they are known one by one: some models cost more beyond a
    prompt's length, which a sum over the whole run would pass by mistake.
    """
    if not calls:
        return UNKNOWN_USAGE
    costs = [price(call, provider, at) for call in calls]
    known = [cost for cost in costs if cost is not None]
    whole = len(known) == len(costs)
    return Usage(
        sum(call.tokens_in for call in calls),
        sum(call.tokens_out for call in calls),
        round(sum(known), 10) if whole else None,
        CostSource.COMPUTED if whole else CostSource.UNKNOWN,
    )


def price(call: Call, provider: str, at: datetime) -> float | None:
    """What one call costs, US dollars; None when the model is not in the list.

    Args:
        call: the tokens.
        provider: the list's name of who sells it: `anthropic`, `openai`, `google`.
        at: when it was made (aware); prices change.
    """
    if call.model is None:
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(
        input_tokens=call.tokens_in,
        output_tokens=call.tokens_out,
        cache_read_tokens=call.cache_read,
        cache_write_tokens=call.cache_write,
    )
    try:
        found = calc_price(
            tokens, model_ref=call.model, provider_id=provider, genai_request_timestamp=at
        )
    except (LookupError, ValueError):  # no such model; more cached tokens than tokens
        return None
    return float(found.total_price)


def has_price(model: str, provider: str, at: datetime) -> bool:
    """Whether the list knows what `model` costs."""
    return price(Call(model, 1, 1), provider, at) is not None
