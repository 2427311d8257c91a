"""The two paths of a selection are followed through the rooms of the package."""

import sys

import optuna

from benchmarks.house import Crossing, Visit, main, visit


def test_both_paths_are_followed_by_module_and_by_room(capsys):
    level = optuna.logging.get_verbosity()
    found = main()
    optuna.logging.set_verbosity(level)
    assert sys.getprofile() is None
    (modules, rooms), (more_modules, more_rooms) = found["table"], found["study"]
    assert {"problem", "losses", "guarantee", "selection"} <= set(rooms.entered)
    assert not {"study", "search", "plots"} & set(rooms.entered)
    assert "study" in more_rooms.entered
    assert len(rooms.entered) < len(modules.entered) < len(more_modules.entered)
    assert rooms.re_entries < modules.re_entries
    assert "What a selection visits" in capsys.readouterr().out


def test_coming_back_is_counted_once_for_each_pair_of_functions():
    there, back = Crossing("a", "f", "b", "g"), Crossing("b", "g", "a", "h")
    assert visit([there, back, there]) == Visit(("b", "a"), 0)
    again = Crossing("a", "other", "b", "g")
    assert visit([there, back, again]) == Visit(("b", "a"), 1)
    assert visit([Crossing("a", "f", "a", "g")]) == Visit((), 0)
