"""Dollars for tokens: per model, per call, offline, and never guessed."""

import socket
from datetime import UTC, datetime

import pytest

from orchestrator.adapters.prices import Call, computed, has_price, price
from orchestrator.model.usage import UNKNOWN_USAGE, CostSource, Usage

AT = datetime(2026, 11, 30, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("call", "provider", "cost"),
    [
        # dollars per million tokens: fresh, cache read, cache write, out
        (Call("gpt-5-codex", 4200, 150, 3000), "openai", (1200 * 1.25 + 3000 * 0.125 + 1500)),
        (
            Call("claude-sonnet-4-5", 4200, 150, 3000, 200),
            "anthropic",
            (1000 * 3 + 3000 * 0.3 + 200 * 3.75 + 150 * 15),
        ),
        (Call("gemini-2.5-flash", 4200, 150, 3000), "google", (1200 * 0.3 + 90 + 375)),
    ],
    ids=["openai", "anthropic", "google"],
)
def test_fresh_cached_and_made_tokens_have_their_own_price(
    call: Call, provider: str, cost: float
) -> None:
    assert price(call, provider, AT) == pytest.approx(cost / 1e6, rel=1e-9)


def test_a_model_nobody_knows_has_no_price_and_its_tokens_still_count() -> None:
    calls = [Call("gpt-5-codex", 10, 1), Call("my-gateway-model", 5, 1)]
    assert computed(calls, "openai", AT) == Usage(15, 2, None, CostSource.UNKNOWN)
    assert not has_price("my-gateway-model", "openai", AT)
    assert has_price("gpt-5-codex", "openai", AT)


def test_a_call_whose_model_is_not_known_has_no_price() -> None:
    assert price(Call(None, 10, 1), "openai", AT) is None


def test_numbers_that_cannot_be_are_not_priced() -> None:
    assert price(Call("gpt-5-codex", 10, 1, cache_read=20), "openai", AT) is None


def test_no_call_at_all_is_unknown_and_not_free() -> None:
    assert computed([], "openai", AT) == UNKNOWN_USAGE


def test_long_prompts_cost_more_only_where_one_call_was_long() -> None:
    long = computed([Call("gemini-2.5-pro", 400_000, 0)], "google", AT)
    short = computed([Call("gemini-2.5-pro", 100_000, 0)] * 4, "google", AT)
    assert long.cost_usd == pytest.approx(1.0)
    assert short.cost_usd == pytest.approx(0.5)


def test_prices_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something asked the network")

    monkeypatch.setattr(socket, "socket", refuse)
    assert price(Call("gpt-5-codex", 1000, 10), "openai", AT) is not None
