"""The mutation run itself: what it changes, what it leaves alone, and that it harms nothing."""

import itertools
import textwrap
import tomllib

import pytest

from tests.mutants import __main__ as runner
from tests.mutants.mutations import mutations

SOURCE = textwrap.dedent('''
    """A docstring with 1 < 2."""
    Number = int | float
    CHUNK = 100


    def f(x: int | None = 3, y=True) -> int | float:
        """Another, with 1 + 1."""
        if x < 2 and not y:
            raise ValueError(f"x is {x + 1}, below {2}")
        return min(x[:y]) - 1.5
''')


def changes(source, **options):
    return {(one.before, one.after) for one in mutations("m.py", source, **options)}


def test_operators_constants_and_truth_values_are_changed():
    found = changes(SOURCE)
    assert found >= {
        ("x < 2", "(x <= 2)"),
        ("x < 2", "(x > 2)"),
        ("x < 2 and not y", "(x < 2 or not y)"),
        ("not y", "y"),
        ("True", "False"),
        ("3", "4"),
        ("min", "max"),
        ("x[:y]", "(x[:y + 1])"),
        ("min(x[:y]) - 1.5", "(min(x[:y]) + 1.5)"),
        ("1.5", "3.0"),
    }


def test_texts_types_errors_and_named_constants_are_left_alone():
    found = changes(SOURCE, left_out=frozenset({"CHUNK"}))
    assert not {before for before, _ in found} & {"int | float", "int | None", "x + 1", "100", "1"}
    assert ("100", "101") in changes(SOURCE)


@pytest.mark.parametrize("seed", range(3))
def test_every_mutant_is_python_and_differs_in_one_place(seed):
    for mutation in runner.drawn(60, seed):
        source = (runner.PACKAGE / mutation.module).read_text(encoding="utf-8")
        mutant = mutation.apply(source)
        compile(mutant, mutation.module, "exec")
        assert mutant != source
        assert mutant.count("\n") <= source.count("\n")
        assert mutation.before in source


def test_the_same_seed_draws_the_same_mutants():
    assert runner.drawn(20, 7) == runner.drawn(20, 7)
    assert runner.drawn(20, 7) != runner.drawn(20, 8)
    assert runner.drawn(40, 7)[:20] == runner.drawn(20, 7)


def test_a_change_elsewhere_leaves_the_drawn_mutants_as_they_are(monkeypatch):
    before = runner.drawn(100, 7)
    modules = sorted(runner.changed_files())
    monkeypatch.setattr(runner, "changed_files", lambda: modules[1:])
    after = runner.drawn(100, 7)
    gone = str(modules[0].relative_to(runner.PACKAGE))
    assert [one for one in before if one.module != gone] == after[
        : sum(o.module != gone for o in before)
    ]


def test_modules_and_tests_are_found_where_they_are():
    assert all(list(runner.PACKAGE.glob(pattern)) for pattern in runner.MODULES)
    assert len({mutation.module for mutation in runner.drawn(10**6, 0)}) > 25
    chosen = (*runner.FIRST.values(), *runner.ROOMS.values(), *runner.LAST.values())
    for pattern in itertools.chain(*chosen):
        assert list((runner.ROOT / "tests").glob(pattern)), pattern
    for path in runner.changed_files():
        near, far = runner.stages(str(path.relative_to(runner.PACKAGE)))
        assert near[0] == str(path.relative_to(runner.ROOT))
        assert len(near) > 1
        assert len({*near, *far}) == len(near) + len(far)
    parts = {part for path in runner.changed_files() for part in (*path.parts, path.stem)}
    assert {*runner.FIRST, *runner.LAST} <= parts


def test_what_is_listed_as_equivalent_is_still_there_and_has_a_reason():
    known = tomllib.loads(runner.KNOWN.read_text(encoding="utf-8"))
    sources = [(path.stem, path.read_text(encoding="utf-8")) for path in runner.changed_files()]
    for one in known["steering"]:
        assert any(stem == one["module"] and one["name"] in text for stem, text in sources), one
        assert len(one["reason"]) > 20
    every = {
        (stem, mutation.function, mutation.before, mutation.after, mutation.occurrence)
        for stem, text in sources
        for mutation in mutations(f"{stem}.py", text)
    }
    for one in known.get("equivalent", []):
        afters = [one["after"]] if isinstance(one["after"], str) else one["after"]
        for after in afters:
            change = (one["module"], one["function"], one["before"], after)
            assert (*change, one.get("occurrence", 1)) in every, one
        assert len(one["reason"]) > 20


def test_a_mutant_is_killed_in_a_copy_and_the_working_tree_stays_as_it_is(tmp_path):
    path = next(runner.PACKAGE.glob("**/procedures.py"))
    before = path.read_bytes()
    module = str(path.relative_to(runner.PACKAGE))
    source = path.read_text(encoding="utf-8")
    mutant = next(
        one
        for one in mutations(module, source)
        if one.function == "bonferroni" and " + " in one.after
    )
    copy = runner.Copy(tmp_path / "copy")
    near = ["tests/kits/test_procedure_kit.py::test_nothing_is_rejected_above_delta"]
    copy.compile(near)
    assert copy.killer(mutant, [["tests/guarantee/test_bounds.py"], near], 300).startswith(*near)
    assert copy.killer(None, [near], 300) is None
    assert path.read_bytes() == before


def test_a_mutant_that_never_ends_is_ended(tmp_path):
    copy = runner.Copy(tmp_path / "copy")
    (tmp_path / "copy" / "tests" / "test_endless.py").write_text(
        "def test_endless():\n    while True:\n        pass\n"
    )
    assert copy.killer(None, [["tests/test_endless.py"]], 5) == "no end within 5 s of work"
