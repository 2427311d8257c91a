"""Where a calibration stands, in plain words."""

from riskpilot.common import how_many
from riskpilot.guarantee import Progress


def progress_in_words(progress: Progress) -> str:
    """Say how many labels there are, what is certified, and whether more can change that."""
    found, needed = int(progress.passed.sum()), len(progress.needed)
    labels = f"{progress.n_labels:,} of at most {how_many(progress.horizon, 'label')}"
    if not found:
        state = "nothing is certified" + (" yet" if needed else "")
    else:
        verb = "is" if found == 1 else "are"
        candidates = how_many(len(progress.plan.order), "candidate")
        state = f"{found} of {candidates} {verb} certified"
    if not needed:
        rest = "no further label can change that"
    else:
        rest = f"{how_many(needed, 'candidate needs', 'candidates need')} further labels"
    return f"{labels}: {state}; {rest}."
