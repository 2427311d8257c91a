"""What a name suggests that riskpilot does not know: that larger is better, or more than a mean.

The lists are short on purpose. They hold words that hardly anybody uses for the contrary; a name
that is refused by mistake can be changed, and a promise under a wrong name cannot.
"""

import re
import unicodedata
from itertools import pairwise

_PARTS = re.compile(r"[\W_]+")
_BARE = frozenset({"Mn", "Cf"})  # accents, and characters of no width


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case; "valAccuracy" and "val-accuracy" have the same two.

    Accents, wide letters, characters that nobody sees and British spelling make no other word.

    >>> words_of("val-Accuracy")
    ('val', 'accuracy')
    """
    plain = "".join(
        one for one in unicodedata.normalize("NFKD", name) if unicodedata.category(one) not in _BARE
    )
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    words = (word.casefold() for word in _PARTS.split(parted) if word)
    return tuple(word.replace("equalised", "equalized") for word in words)


# Words and pairs of words that say "larger is better" wherever they stand in a name ...
_LARGER = frozenset(
    words_of(
        "acc accuracy auc auprc auroc availability bleu correct correctness coverage dice f1 "
        "f1score faithfulness fbeta fscore groundedness helpfulness iou jaccard kappa mcc meteor "
        "miou mrr ndcg npv ppv precision profit psnr quality r2 recall revenue reward rewards "
        "rocauc rouge sensitivity "
        "specificity ssim throughput tnr tp tpr uptime utility"
    )
)
_MEAN_AVERAGE_PRECISION = "mAP"  # in this spelling only: a map may be anything
_LARGER_PAIRS = frozenset(
    {
        ("success", "rate"),
        ("pass", "rate"),
        ("win", "rate"),
        ("solve", "rate"),
        ("hit", "rate"),
        ("exact", "match"),
        ("true", "positive"),
        ("pass", "at"),
        ("pass", "k"),
        ("f", "score"),
        ("f", "1"),
        ("f", "measure"),
        ("r", "squared"),
    }
)
# Words that say it at the end of a name: "task_success" does, "success_latency" does not ...
_LARGER_AT_THE_END = frozenset({"success", "successes", "successful", "accurate", "solved"})
# ... unless a word before them says what is counted up to there, or turns them.
_UP_TO = frozenset(
    words_of("after as before given if less never on once per than to un unless until when without")
)
# What passes, where that is good: bytes and arguments are passed, too.
_PASSING = frozenset(words_of("all check checks has is passed task tasks test tests was"))
_JOINED_PAIRS = frozenset("".join(pair) for pair in _LARGER_PAIRS if len("".join(pair)) > 6)
_ACCURACY = re.compile(r"(?<!in)accuracy$")  # "valaccuracy" is one
# ... unless another word says that what is recorded is a loss.
_LOSS = frozenset(
    words_of(
        "bad below bias change complement cost costs decline decrease deficit degradation "
        "deviation diff difference disparity distance divergence drop dropped err error errors "
        "excess fail failed failure failures false gap gaps hacking inequality inverse lack "
        "lacking latency loss losses lost low lower minus miss missed misses missing mistake "
        "mistakes neg negated negative no non not penalty reduction regret risk seconds shortfall "
        "spread std time uncertainty under unfairness variance violated violation violations "
        "worse wrong"
    )
)
# Words that say that something else than a mean is limited, and what to write for them.
_LEVEL = r"(50|[6-9]\d|9{2,})"
_PERCENTILE = re.compile(
    rf"\b(?:[pq]|pct|perc)\s?{_LEVEL}(?!\d)"
    rf"|\b{_LEVEL}(?: \d+)?\s?(?:st|nd|rd|th|pct|perc|percent)\b"
)
_STATISTICS = {
    "quantile": "Quantile(0.95)",
    "percentile": "Quantile(0.95)",
    "decile": "Quantile(0.9)",
    "median": "Quantile(0.5)",
    "max": "Quantile(0.99)",
    "maximum": "Quantile(0.99)",
    "cvar": "CVaR(0.95)",
    "tail": "CVaR(0.95)",
    "top": "CVaR(0.95)",
    "worst": "CVaR(0.95)",
}
_FAIRNESS = {
    ("demographic", "parity"): "GroupGap()",
    ("statistical", "parity"): "GroupGap()",
    ("equal", "opportunity"): "GroupGap()",
    ("equalized", "odds"): 'GroupGap(within="label")',
}
# What compares: "harm_gap" and "gap in harm" do, a "gap_penalty" does not.
_COMPARING = {"gap": "GroupGap()", "gaps": "GroupGap()", "drop": "Difference()"}
_COMPARED = frozenset({"of", "in", "between", "across"})
_BY_GROUP = {("by", "group"), ("by", "groups"), ("per", "group"), ("across", "groups")}
# One word that is made of such a word and of what people often measure, such as "maxlatency"; the
# list keeps "maximal", "worsted" and "raindrop" out.
_JOINED = re.compile(
    rf"^(?P<before>{'|'.join(['worstgroup', *_STATISTICS])})?"
    r"(?:cost|delay|distance|duration|err|error|harm|latency|loss|memory|price|regret|risk|time"
    r"|toxicity)s?"
    rf"(?P<behind>{'|'.join([*_COMPARING, *_STATISTICS])})?$"
)
_JOINED_SAY = {"worstgroup": "WorstGroup()", **_STATISTICS, **_COMPARING}
_TOP_K = re.compile(r"\btop ?\d+\b(?! perc)")  # the error of the best k guesses is a mean


def sounds_larger(name: str) -> bool:
    """Whether a name that is not known says "larger is better".

    >>> [sounds_larger(name) for name in ("val_accuracy", "Top-5 accuracy", "ROC AUC", "reward")]
    [True, True, True, True]
    >>> [sounds_larger(name) for name in ("accuracy_drop", "1 - F1", "one_minus_auc", "harm")]
    [False, False, False, False]
    """
    if re.match(r"\s*(1\s*)?[-\u2212\u2013]\s*\S", name):  # "1 - accuracy", "-reward"
        return False
    words = words_of(name)
    if any(word in _LOSS for word in words):
        return False
    if _ends_well(words):
        return True
    pairs = set(pairwise(words))
    counted = any(one in ("pass", "hit", "hits") and other.isdigit() for one, other in pairs)
    parts = _PARTS.split(name)
    if _MEAN_AVERAGE_PRECISION in parts:
        return True
    whole = {word.casefold() for word in parts}  # "mIoU" is one word
    if not _JOINED_PAIRS.isdisjoint(words) or any(map(_ACCURACY.search, words)):
        return True
    return counted or not _LARGER.isdisjoint({*words, *whole}) or bool(pairs & _LARGER_PAIRS)


def _ends_well(words: tuple[str, ...]) -> bool:
    """Whether the end of a name says that something went well.

    >>> [_ends_well(words_of(name)) for name in ("task_success", "solved", "tests_passed")]
    [True, True, True]
    >>> [_ends_well(words_of(name)) for name in ("steps_to_success", "unsolved", "bytes_passed")]
    [False, False, False]
    """
    if not words or not _UP_TO.isdisjoint(words[:-1]):
        return False
    return words[-1] in _LARGER_AT_THE_END or (words[-1] == "passed" and _PASSING.issuperset(words))


def said_statistic(name: str) -> str | None:
    """The part of a name that speaks of something else than a mean, with what to write for it.

    >>> said_statistic("latency_p95"), said_statistic("latency")
    ("'p95': statistic=Quantile(0.95)", None)
    """
    words = words_of(name)
    if ("worst", "group") in pairwise(words):
        return "'worst group': statistic=WorstGroup()"
    if ("group", "gap") in pairwise(words):
        return "'group gap': statistic=GroupGap()"
    if words[-2:] in _BY_GROUP:
        return f"{' '.join(words[-2:])!r}: statistic=WorstGroup()"
    if words[:1] == ("highest",):  # of an "error_at_highest_load" it is part of the condition
        return "'highest': statistic=Quantile(0.99)"
    for pair, statistic in _FAIRNESS.items():
        if pair in pairwise(words) or "".join(pair) in words:
            return f"'{' '.join(pair)}': statistic={statistic}"
    for word, after in pairwise((*words, "")):
        if word in _COMPARING and len(words) > 1 and (after == "" or after in _COMPARED):
            return f"{word!r}: statistic={_COMPARING[word]}"
        parts = _JOINED.match(word)
        if parts is not None and (said := parts["before"] or parts["behind"]):
            return f"{said!r}: statistic={_JOINED_SAY[said]}"
    text = " ".join(words_of(name.replace("%", "percent ")))
    if found := _PERCENTILE.search(text):
        return f"{found[0]!r}: statistic=Quantile(0.{found[1] or found[2]})"
    for word in re.findall(r"[^\W\d]+", _TOP_K.sub("", text)):
        if word in _STATISTICS:
            return f"{word!r}: statistic={_STATISTICS[word]}"
    return None
