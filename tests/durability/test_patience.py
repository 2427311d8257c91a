"""A storage that does not answer is waited for, unless whoever asks has something to do first."""

import pytest

from riskpilot.study.storages.patience import (
    StorageUnreachableError,
    hurried,
    is_hurried,
    unless_away,
)


def test_a_hurry_inside_another_one_does_not_end_the_other():
    with hurried():
        with hurried():
            assert is_hurried()
        assert is_hurried()
    assert not is_hurried()


def test_what_needs_a_storage_that_is_away_is_left_out_and_what_comes_behind_goes_on():
    done = []
    with unless_away():
        assert is_hurried()
        done.append("before")
        raise StorageUnreachableError("has not worked for 10 minutes")
    assert not is_hurried()
    with pytest.raises(ValueError, match="another"), unless_away():
        raise ValueError("another error")
    assert done == ["before"]
