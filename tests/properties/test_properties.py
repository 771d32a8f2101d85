"""Random compositions of every kind of node: credits add up, and are no farther off than `error` says.

A few of the cases that `python tests/properties/compositions.py` draws by the thousand.
"""

from __future__ import annotations

import pytest
from compositions import judge

CASES = 300


@pytest.mark.parametrize("first", range(0, CASES, 25))
def test_credits_of_random_compositions_keep_their_word(first: int) -> None:
    for number in range(first, first + 25):
        assert not judge(number).broken
