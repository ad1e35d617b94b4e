"""The choice of tokens: what may be drawn, how often, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from aot.runtime.errors import UsageError
from aot.runtime.generation.sampling import Logits, Sampler, Sampling, drawn, exponentials, greatest

LOGITS = np.log(np.array([0.1, 0.4, 0.05, 0.4, 0.05], np.float32))


@pytest.mark.parametrize(
    ("how", "tokens"),
    [
        (Sampling(1.0), [1, 3, 0, 2, 4]),
        (Sampling(1.0, top_k=3), [1, 3, 0]),
        (Sampling(1.0, top_p=0.8), [1, 3]),
        (Sampling(1.0, top_p=0.81), [1, 3, 0]),
        (Sampling(1.0, top_k=1), [1]),
        (Sampling(1.0, top_p=1e-9), [1]),
        (Sampling(0.05, top_p=0.99), [1, 3]),
        (Sampling(1.0, top_k=99), [1, 3, 0, 2, 4]),
    ],
)
def test_sampling_draws_the_allowed_tokens(how: Sampling, tokens: list[int]) -> None:
    assert list(dict.fromkeys(drawn(LOGITS, how, n / 1000) for n in range(1000))) == tokens
    sampler = Sampler(how)
    assert {sampler.choose(LOGITS) for _ in range(400)} == set(tokens)


def test_tokens_are_drawn_as_often_as_their_probabilities_say() -> None:
    sampler = Sampler(Sampling(1.0, seed=7))
    counts = np.bincount([sampler.choose(LOGITS) for _ in range(4000)], minlength=5) / 4000
    np.testing.assert_allclose(counts, np.exp(LOGITS), atol=0.03)


def test_greedy_takes_the_first_of_the_greatest() -> None:
    assert Sampler(Sampling()).choose(LOGITS) == 1


def test_exponentials_are_exact_to_two_units_of_the_last_place() -> None:
    x = np.concatenate([np.linspace(-700, 0, 50_001), [-1e-300, -0.0]])
    wanted = np.exp(x.astype(np.longdouble))
    assert (abs(exponentials(x) - wanted) <= 2 * np.spacing(exponentials(x))).all()
    assert exponentials(np.array([0.0, -701.0, -np.inf])).tolist() == [1.0, 0.0, 0.0]


def test_an_infinite_logit_is_taken() -> None:
    logits = np.array([0, np.inf, 1, np.inf], np.float32)
    assert {Sampler(Sampling(1.0, seed=n)).choose(logits) for n in range(9)} == {1}


def test_equal_seeds_draw_equal_tokens() -> None:
    drawn = [[s.choose(LOGITS) for _ in range(50)] for s in map(Sampler, (Sampling(1.0, seed=n) for n in (3, 3, 4)))]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"temperature": -1.0}, "temperature: must be 0 or more, got -1.0"),
        ({"temperature": float("nan")}, "temperature: must be 0 or more, got nan"),
        ({"top_k": -1}, "top_k: must be 0 or more, got -1"),
        ({"top_p": 0.0}, "top_p: must be above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p: must be above 0 and at most 1, got 1.5"),
        ({"seed": -1}, "seed: must be 0 or more, got -1"),
    ],
)
def test_invalid_settings_are_refused(fields: dict[str, float], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Sampling(**fields)


def test_logits_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="logits must be numbers, got NaN"):
        Sampler(Sampling()).choose(np.array([1.0, np.nan], np.float32))


@pytest.mark.parametrize("count", [1, 7, 50, 199, 200, 300])
def test_the_greatest_are_those_of_a_whole_sort(count: int) -> None:
    """If more tokens have the same logit than `top_k` allows, those with the least numbers are kept."""
    random = np.random.default_rng(count)
    for logits in (random.standard_normal(200), random.integers(-5, 5, 200)):
        logits = logits.astype(np.float32)
        wanted = np.argsort(-logits, kind="stable")[:count]
        np.testing.assert_array_equal(greatest(logits, count), wanted)


@pytest.mark.parametrize("scale", [0.01, 2.0, 30.0])
@pytest.mark.parametrize(
    "how", [Sampling(1.0), Sampling(0.7, top_p=0.99), Sampling(2.0, 1000, 0.999), Sampling(1.0, 999)]
)
def test_draws_are_those_of_a_whole_sort(how: Sampling, scale: float) -> None:
    """Tokens are sorted as far as a draw needs, the sums have the bits of all."""
    random = np.random.default_rng(3)
    logits: Logits = np.round(scale * random.standard_normal(6000), 2).astype(np.float32)
    weights = exponentials((logits.astype(np.float64) - logits.max()) / how.temperature)
    order = np.argsort(-logits, kind="stable")[: how.top_k or None]
    sums = np.cumsum(weights[order])
    total = sums[-1] if how.top_k else np.cumsum(weights)[-1]
    if how.top_p < 1:
        count = min(np.searchsorted(sums, how.top_p * total) + 1, len(order))
        order, sums, total = order[:count], sums[:count], sums[count - 1]
    for number in (0.0, *random.random(20), 1 - 2**-53):
        wanted = order[min(np.searchsorted(sums, number * total, "right"), len(order) - 1)]
        assert drawn(logits, how, float(number)) == wanted
