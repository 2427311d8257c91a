"""Warnings are left out in one thread at a time."""

import threading
import warnings

import pytest

from riskpilot.common import unwarned


def test_a_warning_is_left_out_inside_and_heard_again_outside():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with unwarned(UserWarning):
            warnings.warn("not heard", UserWarning, stacklevel=1)
        with unwarned(DeprecationWarning), pytest.raises(UserWarning):
            warnings.warn("of another kind", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning):
            warnings.warn("heard", UserWarning, stacklevel=1)


def test_a_thread_does_not_put_back_the_filters_of_another():
    first_is_inside, first_may_leave = threading.Event(), threading.Event()
    caught = []

    def first():
        with unwarned(UserWarning):
            first_is_inside.set()
            first_may_leave.wait(10)

    def second():
        try:
            with unwarned(UserWarning):
                first_may_leave.set()  # it would leave before the warning
                leaving.join(1)
                warnings.warn("not heard", UserWarning, stacklevel=1)
        except UserWarning as error:
            caught.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaving = threading.Thread(target=first)
        leaving.start()
        first_is_inside.wait(10)
        following = threading.Thread(target=second)
        following.start()
        following.join(0.2)  # it waits for the first
        first_may_leave.set()
        following.join(10)
    assert not caught
