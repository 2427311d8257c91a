"""A storage that does not answer is waited for, unless whoever asks has something to do first."""

from riskpilot.study.storages.patience import hurried, is_hurried


def test_a_hurry_inside_another_one_does_not_end_the_other():
    with hurried():
        with hurried():
            assert is_hurried()
        assert is_hurried()
    assert not is_hurried()
