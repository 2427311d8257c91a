"""Where a calibration stands, in plain words."""

from riskpilot.guarantee import Progress


def progress_in_words(progress: Progress) -> str:
    """Say how many labels there are, what is certified, and whether more can change that."""
    found, needed = int(progress.passed.sum()), len(progress.needed)
    labels = f"{progress.n_labels:,} of at most {progress.horizon:,} labels"
    if not found:
        state = "nothing is certified" + (" yet" if needed else "")
    else:
        verb = "is" if found == 1 else "are"
        state = f"{found} of {len(progress.plan.order)} candidates {verb} certified"
    if not needed:
        rest = "no further label can change that"
    else:
        rest = f"{needed} {'candidate needs' if needed == 1 else 'candidates need'} further labels"
    return f"{labels}: {state}; {rest}."
