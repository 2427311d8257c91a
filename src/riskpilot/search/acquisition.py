"""Local hypervolume improvement: which configuration to evaluate next, from validation alone.

Objectives are columns: the c risks in the problem's order, then the free objective.
"""

from collections.abc import Sequence

import numpy as np

from riskpilot.common.arrays import BoolArray, FloatArray
from riskpilot.guarantee import Interval
from riskpilot.search.choices import posterior_front
from riskpilot.search.model import Model, even_draws
from riskpilot.search.prospects import Score, certain, chance_of_result, novelty, remoteness
from riskpilot.search.strategies import Strategy
from riskpilot.search.worlds import volume_added

# How far below its posterior mean an objective is taken to be when the means promise nothing.
_OPTIMISM = 1.0
# How far below it is taken to be as long as everything evaluated would pass.
_BOLDNESS = 3.0
# A configuration is safe when its risks lie this many standard errors below what passes.
_SAFE = 1.0
# Looking for a safer one is worth an evaluation when it may be safer by this much.
_SAFER = 0.3
# Something nearly passes that misses what passes by fewer standard errors than this.
_NEARLY = 2.0
# Where the safest evaluation misses what passes by so many standard errors, it will not pass.
_HOPELESS = 3.0
# Then a place as near to an evaluation as this shows nothing that was not seen there.
_NEXT_TO = 0.01
# The places whose risks may be lowest are this share of all.
_LOWEST = 0.3
# Where an evaluation is expected to gain less than this share of all that there may be to gain,
# every so many go where nothing was evaluated: there may be a place that no surrogate knows of.
_LITTLE, _LEAVE = 0.0005, 3
# So it is among so many parameters; a choice counts as many as it has values.
_FEW = 3
# An improvement up to this share of all that there may be to gain is a rounding error.
_ROUNDING = 1e-9
# Expected improvements are means over so many draws from what surrogates leave likely.
_DRAWS = 32
# Among so many parameters it paid to go by what surrogates do not know, and among no others.
_EXPLORED = 2


def risk_excess(model: Model, x: FloatArray, region: Sequence[Interval]) -> FloatArray:
    """Compute by how many standard errors the worst risk misses what passes, optimistically.

    Returns shape (n,) for ``x`` of shape (n, d).
    """
    means, stds = model.means_and_stds(x)
    return misses(region, means - _OPTIMISM * stds)


def safety(model: Model, region: Sequence[Interval], means: FloatArray) -> tuple[float, float]:
    """Compute by how many standard errors the safest evaluation, and the safest place, miss.

    They miss what passes; a negative number says that they are expected to pass. ``means``:
    posterior means over the space, shape (n, c + 1).
    """
    evaluated, anywhere = (misses(region, p).min() for p in (posterior_front(model), means))
    return float(evaluated), float(anywhere)


def has_passing(region: Sequence[Interval], values: FloatArray, *, has_safe: bool = False) -> bool:
    """Tell whether an evaluation is expected to pass.

    ``values``: what evaluations showed, shape (n, c + 1). ``has_safe``: whether one of them was
    known to be safe beforehand; then it is enough that one nearly passes.
    """
    return bool((misses(region, values) < (_NEARLY if has_safe else 0.0)).any())


def is_bold_step(model: Model, region: Sequence[Interval], strategy: Strategy) -> bool:
    """Tell whether the next step is a bold one: every evaluation is expected to pass.

    Those of an earlier study count as well: where one of them would not pass, the search knows
    already on which side of it to look.
    """
    seen = np.vstack([posterior_front(model), model.means(model.earlier_places)])
    return strategy.bold and bool((misses(region, seen) < 0).all())


def is_exploring(model: Model, strategy: Strategy) -> bool:
    """Tell whether the search also goes by what its surrogates do not know.

    It does where there are few evaluations of two parameters: the surrogates then hardly know which
    of the two matters.
    """
    n, d = model.observations.x.shape
    known = n + len(model.earlier_places)
    return bool(d == _EXPLORED and known < strategy.exploration * d)


def worth_of_anything(model: Model, region: Sequence[Interval], strategy: Strategy) -> float:
    """Compute how much worse nothing certified is than the worst free objective that was observed.

    A configuration that was named as safe is there when nothing better passes. Without one nothing
    may be certified in the end. So as soon as an evaluation is expected to pass, a safer
    configuration is worth an evaluation as well, however bad its free objective is.
    """
    if model.observations.has_safe or not has_passing(region, posterior_front(model)):
        return 0.0
    return strategy.fallback * float(np.ptp(model.observations.values[:, -1]))


def misses(region: Sequence[Interval], points: FloatArray) -> FloatArray:
    """Compute by how many standard errors each point's worst risk misses what passes, (n,)."""
    alpha_max = np.array([part.alpha_max for part in region])
    noise = np.array([max(part.noise, 1e-12) for part in region])
    worst: FloatArray = ((points[:, :-1] - alpha_max) / noise).max(axis=1)
    return worst


def score(
    model: Model,
    region: Sequence[Interval],
    x: FloatArray,
    strategy: Strategy,
    means: FloatArray | None = None,
    *,
    may_leave: bool = False,
) -> tuple[FloatArray, Score]:
    """Make the function whose maximum over the space is the next evaluation.

    It is what `_worth_of_result` says, by the chance that there is a result (see
    `chance_of_result`). The arguments are the same. Returns the values at ``x``, shape (n,), and
    the function itself.
    """
    values, worth = _worth_of_result(model, region, x, strategy, means, may_leave=may_leave)
    chance, nothing = chance_of_result(model.observations), float(values.min())
    if chance is certain:
        return values, worth

    def expected(at: FloatArray) -> FloatArray:
        return np.maximum(worth(at) - nothing, 0.0) * chance(at)

    return (values - nothing) * chance(x), expected


def _worth_of_result(
    model: Model,
    region: Sequence[Interval],
    x: FloatArray,
    strategy: Strategy,
    means: FloatArray | None,
    *,
    may_leave: bool,
) -> tuple[FloatArray, Score]:
    """Make the function that says what the result of an evaluation is worth.

    ``x``: points that cover the space, (n, d); they fix the reference point and show whether the
    improvement is flat. ``means``: the posterior means there, where they are known already. With
    ``safe_first``, a safe configuration comes before everything else as long as there may be a
    safer one, and as long as nothing evaluated has a chance to pass; then every second evaluation
    goes where nothing was evaluated (see `_safer_or_remote`). Where the means show no safer one,
    the target moves up to what there is; but as long as nothing is expected to pass, every second
    evaluation looks for what the means do not show (see `_safer_or_elsewhere`). With ``bold``, as
    long as everything evaluated is expected to pass, values count as optimistic: nothing has shown
    yet where the limits lie, and means fall back to what is known far from it. As long as it is
    exploring (see `is_exploring`), improvements are averaged over what the surrogates leave likely.
    Where the means promise no improvement anywhere, optimistic values are tried, and at last the
    least certain place that may still be safe. With ``avoid_repeats``, improvements count by the
    chance that they are not what an earlier evaluation has shown. ``may_leave``: whether it may
    send an evaluation elsewhere where next to nothing is to be gained (see `_is_turn_to_leave`).
    Returns the values at ``x``, shape (n,), and the function itself.
    """
    # Algorithm alg:bo, line 8
    means = model.means(x) if means is None else means
    lift = 0.0
    if strategy.safe_first:
        evaluated, anywhere = safety(model, region, means)
        if evaluated > -_SAFE:
            if evaluated > _HOPELESS:
                return _safer_or_remote(model, region, x)
            if anywhere < evaluated - _SAFER:
                return _with_values(x, lambda at: -risk_excess(model, at, region))
            if evaluated > 0 and _turn(model) % 2:
                return _safer_or_elsewhere(model, region, x)
            lift = evaluated + _SAFE
    reference = strategy.reference(region, means, model.observations.values)
    reference = np.append(
        reference[:-1], reference[-1] + worth_of_anything(model, region, strategy)
    )
    added_volume, largest = volume_added(
        strategy.front(model), reference, region, strategy.scale, lift
    )
    floor = _ROUNDING * largest
    chance_of_news = novelty(model.observations) if strategy.avoid_repeats else certain

    def improvement(at: FloatArray, at_means: FloatArray) -> FloatArray:
        return added_volume(at_means) * chance_of_news(at)

    daring = is_bold_step(model, region, strategy)
    if not daring and lift == 0 and is_exploring(model, strategy):
        draws = even_draws(_DRAWS, means.shape[1])

        def expected(at: FloatArray) -> FloatArray:
            at_means, stds = model.means_and_stds(at)
            volumes = np.array([added_volume(at_means + z * stds) for z in draws])
            mean: FloatArray = volumes.mean(axis=0) * chance_of_news(at)
            return mean

        values = expected(x)
        if values.max() > floor:
            return values, expected
    values = improvement(x, means)
    is_used_up = values.max() < _LITTLE * largest
    if may_leave and is_used_up and not daring and _is_turn_to_leave(model, strategy):
        return _elsewhere(model, region, x)
    if values.max() > floor and not daring:
        return values, lambda at: improvement(at, model.means(at))

    def optimistic(at: FloatArray) -> FloatArray:
        at_means, stds = model.means_and_stds(at)
        return improvement(at, at_means - (_BOLDNESS if daring else _OPTIMISM) * stds)

    values = optimistic(x)
    if values.max() > floor:
        return values, optimistic
    return _with_values(x, lambda at: _doubt(model, region, at))


def _is_turn_to_leave(model: Model, strategy: Strategy) -> bool:
    """Tell whether it is the turn of an evaluation that leaves what surrogates know of.

    They expect high risks where nothing was evaluated, and so a search that has found one region in
    which limits are kept would never look for another one. Among many parameters the places far
    from all evaluations are corners, of which there are too many.
    """
    few = model.observations.x.shape[1] <= _FEW
    return few and strategy.exploration > 0 and _turn(model) % _LEAVE == _LEAVE - 1


def _elsewhere(model: Model, region: Sequence[Interval], x: FloatArray) -> tuple[FloatArray, Score]:
    """Make the score that is the distance to all evaluations, in turn anywhere and where risks may
    be lowest."""
    if _turn(model) // _LEAVE % 2:
        return _remote_and_low(model, region, x)
    return _with_values(x, remoteness(model.observations))


def _safer_or_remote(
    model: Model, region: Sequence[Interval], x: FloatArray
) -> tuple[FloatArray, Score]:
    """Make the score of `score` as long as nothing evaluated has a chance to pass.

    Every second step goes to the place whose risks may be lowest. Where that is next to an
    evaluation, such as the corner to which risks fall, it would show the same again. The others go
    where nothing was evaluated: in turn among the places whose risks may be lowest, since the
    farthest places are corners, and anywhere, since surrogates may be wrong about these risks.
    """
    remote, excess = remoteness(model.observations), risk_excess(model, x, region)
    n = _turn(model)
    if n % 4 == 3:
        return _remote_and_low(model, region, x)
    if n % 2 or remote(x[[int(excess.argmin())]])[0] < _NEXT_TO:
        return _with_values(x, remote)
    return -excess, lambda at: -risk_excess(model, at, region)


def _safer_or_elsewhere(
    model: Model, region: Sequence[Interval], x: FloatArray
) -> tuple[FloatArray, Score]:
    """Make the score of `score` for what the means do not show, while something nearly passes.

    It is the place whose risks may be lowest, or where that is next to an evaluation, another one
    of those whose risks may be low. Where no configuration was named as safe, every second one goes
    where nothing was evaluated: what nearly passes may be all that there is around.
    """
    remote = remoteness(model.observations)
    if not model.observations.has_safe and _turn(model) % 4 == 3:
        return _with_values(x, remote)
    excess = risk_excess(model, x, region)
    if remote(x[[int(excess.argmin())]])[0] < _NEXT_TO:
        return _remote_and_low(model, region, x)
    return -excess, lambda at: -risk_excess(model, at, region)


def _remote_and_low(
    model: Model, region: Sequence[Interval], x: FloatArray
) -> tuple[FloatArray, Score]:
    """Make the score that is the distance to all evaluations where risks may be lowest."""
    remote = remoteness(model.observations)
    line = float(np.quantile(risk_excess(model, x, region), _LOWEST))
    return _with_values(
        x, lambda at: np.where(risk_excess(model, at, region) <= line, remote(at), -1.0)
    )


def _turn(model: Model) -> int:
    """Count the evaluations, finished, under way or failed: what is done in turn goes by it."""
    failed = model.observations.failed
    return len(model.evaluated) + (0 if failed is None else len(failed))


def _with_values(x: FloatArray, function: Score) -> tuple[FloatArray, Score]:
    """Return the values of a function at ``x``, and the function itself."""
    return function(x), function


def may_pass(model: Model, region: Sequence[Interval], x: FloatArray) -> BoolArray:
    """Tell where the risks may still pass, optimistically; shape (n,) for ``x`` of (n, d)."""
    means, stds = model.means_and_stds(x)
    return _may_pass(region, means, stds)


def _may_pass(region: Sequence[Interval], means: FloatArray, stds: FloatArray) -> BoolArray:
    """Tell where the risks may still pass, from means and deviations, (n, c + 1) each."""
    high = np.array([part.high for part in region])
    allowed: BoolArray = np.all((means - _OPTIMISM * stds)[:, :-1] <= high, axis=1)
    return allowed


def _doubt(model: Model, region: Sequence[Interval], x: FloatArray) -> FloatArray:
    """Compute posterior deviations in units of the observed spread, where risks may still pass."""
    means, stds = model.means_and_stds(x)
    spread = np.maximum(np.ptp(model.observations.values, axis=0), 1e-12)
    doubt: FloatArray = (stds / spread).max(axis=1)
    return np.where(_may_pass(region, means, stds), doubt, doubt - doubt.max() - 1.0)
