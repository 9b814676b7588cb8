"""The check of growth itself: it has to refuse what is quadratic."""

from __future__ import annotations

from collections import deque

import pytest

from tests.growth import assert_linear


def test_linear_passes_and_quadratic_does_not() -> None:
    """Passing once over the input is fine; passing over it once for each of its items is not."""
    assert_linear(lambda count: lambda: deque(range(count * 1_000), 0), 4_000)

    with pytest.raises(AssertionError, match="16 times the input"):
        assert_linear(lambda count: lambda: deque(range(count * count), 0), 4_000)


def test_what_is_linear_may_be_too_slow_all_the_same() -> None:
    """A bound of seconds holds besides."""
    with pytest.raises(AssertionError, match="within"):
        assert_linear(lambda count: lambda: deque(range(count), 0), 4_000, within=0.0)
