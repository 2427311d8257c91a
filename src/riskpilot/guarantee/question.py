"""A question to calibration data: all that is settled before they are opened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from riskpilot.common import digest_of, plain
from riskpilot.guarantee.procedure_names import describe
from riskpilot.guarantee.procedures import Procedure
from riskpilot.guarantee.testing import TestPlan
from riskpilot.problem import Problem
from riskpilot.statistics import GroupName

# So many groups are named in a sentence; where there are more than one beyond, they are counted.
_MOST_NAMED = 5


@dataclass(frozen=True)
class Question:
    """All that is settled before calibration data is opened.

    ``problem``: with the whole delta; the plan's problem has the share of it that may be spent,
    ``spend``. ``configs``: what every row that was considered stands for, as plain JSON; None where
    rows have no names and go by their index. ``space``: the search space, as plain JSON, where the
    plan goes by estimates that were smoothed over it. ``trials``: the numbers of the rows' trials,
    where they come from a study; ``search_seed``: the seed of its search. ``table``:
    which columns of a table the losses were read from, where they were. ``evaluated``: of the rows
    whose evaluation a race ended, how many validation examples were evaluated; the losses of the
    others are foretold.
    """

    problem: Problem
    plan: TestPlan
    procedure: Procedure
    configs: tuple[dict[str, Any], ...] | None = None
    spend: float = 1.0
    space: dict[str, Any] | None = None
    trials: tuple[int, ...] | None = None
    search_seed: int | None = None
    table: Mapping[str, Any] | None = None
    evaluated: Mapping[int, int] = field(default_factory=dict)

    @property
    def candidates(self) -> tuple[dict[str, Any], ...]:
        """The configurations that are tested, in testing order."""
        return tuple(config_of(self.configs, row) for row in self.plan.order)

    @property
    def plan_digest(self) -> str:
        """The digest of the plan, of the configurations, and of what the order went by.

        Estimates count to six digits: a question must not hang on how another machine rounds.
        """
        estimates = [
            [float(f"{estimate:.6g}") for estimate in row] for row in self.plan.estimates or ()
        ]
        configs = None if self.configs is None else list(self.configs)
        return digest_of([self.plan.digest, configs, self.space, estimates])

    @property
    def content(self) -> dict[str, Any]:
        """The question as plain JSON: what ledgers, seals and certificates say of it alike."""
        return {
            "asked": plain(self.problem.to_dict()),
            "level": self.plan.problem.delta,
            "spend": self.spend,
            "procedure": plain(describe(self.procedure)),
            "groups": {
                name: [group if isinstance(group, str) else list(group) for group in groups]
                for name, groups in self.plan.groups.items()
            },
            "seeds": {
                "test": self.plan.seed,
                "shuffle": self.plan.shuffle,
                "entropy": self.plan.entropy,
                "search": self.search_seed,
            },
            "trials": None if self.trials is None else runs(self.trials),
            "horizon": self.plan.horizon,
            "plan": self.plan_digest,
        }

    @property
    def entry(self) -> dict[str, Any]:
        """What a ledger keeps of the question: its digest, its words and its content."""
        content = self.content
        return {"question": question_digest(content), "problem": str(self), **content}

    def __str__(self) -> str:
        return question_in_words(self.plan.problem, self.plan.groups, self.plan.horizon)


def question_in_words(
    problem: Problem, groups: Mapping[str, Sequence[GroupName]], horizon: int | None
) -> str:
    """Say what is asked, with the delta that may be spent on it, of which groups, and up to how
    many labels where they arrive one after another."""
    arriving = "" if horizon is None else f" Labels arrive one after another, at most {horizon:,}."
    return f"{problem}{groups_in_words(groups)}{arriving}"


def config_of(configs: Sequence[Mapping[str, Any]] | None, row: int) -> dict[str, Any]:
    """What a row stands for; its index where rows have no names."""
    return {"index": row} if configs is None else dict(configs[row])


def question_digest(content: Mapping[str, Any]) -> str:
    """Compute the digest by which a ledger knows a question again."""
    return digest_of([content["plan"], content["procedure"], content["spend"]])


def groups_in_words(groups: Mapping[str, Sequence[GroupName]]) -> str:
    """Name the groups that limits are about, each sentence after a space.

    >>> groups_in_words({"error": ("a", "b", "c")})
    ' The limit on error is about these groups: a, b, c; it says nothing of any other group.'
    >>> groups_in_words({"error": tuple("abcdefgh")})[43:]
    'a, b, c, d, e and 3 more, listed in the certificate; it says nothing of any other group.'
    """
    return "".join(
        f" The limit on {name} is about these groups: {_listed(names)}; it says nothing of any "
        f"other group."
        for name, names in groups.items()
    )


def _listed(names: Sequence[GroupName]) -> str:
    if len(names) <= _MOST_NAMED + 1:
        return ", ".join(map(_plain_name, names))
    named = ", ".join(map(_plain_name, names[:_MOST_NAMED]))
    return f"{named} and {len(names) - _MOST_NAMED} more, listed in the certificate"


def _plain_name(name: GroupName) -> str:
    return name if isinstance(name, str) else f"{name[0]} of label {name[1]}"


def runs(numbers: Sequence[int]) -> list[list[int]]:
    """Write ascending numbers as first and last of each run without a gap.

    >>> runs([0, 1, 2, 4])
    [[0, 2], [4, 4]]
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def numbers_of(found: Sequence[Sequence[int]]) -> list[int]:
    """Read what `runs` wrote.

    >>> numbers_of([[0, 2], [4, 4]])
    [0, 1, 2, 4]
    """
    return [number for first, last in found for number in range(first, last + 1)]


def how_many_in(found: Sequence[Sequence[int]]) -> int:
    """Count the numbers that `runs` wrote, without reading each of them.

    >>> how_many_in([[0, 2], [4, 4]])
    4
    """
    return sum(last - first + 1 for first, last in found)


def foretold_rows(evaluated: Mapping[int, int]) -> list[dict[str, int]] | None:
    """Write of which rows validation losses are foretold, and after how many that were evaluated.

    >>> foretold_rows({4: 300, 1: 250})
    [{'row': 1, 'n_evaluated': 250}, {'row': 4, 'n_evaluated': 300}]
    """
    return [{"row": row, "n_evaluated": n} for row, n in sorted(evaluated.items())] or None


def evaluated_rows(found: Sequence[Mapping[str, int]] | None) -> dict[int, int]:
    """Read what `foretold_rows` wrote.

    >>> evaluated_rows([{"row": 1, "n_evaluated": 250}]), evaluated_rows(None)
    ({1: 250}, {})
    """
    return {one["row"]: one["n_evaluated"] for one in found or ()}
