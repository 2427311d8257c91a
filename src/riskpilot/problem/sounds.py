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
        "acc accuracy adequacy ap50 auc auprc auroc availability bertscore bleu bleurt chrf "
        "coherence correct correctness coverage csat dcg dice elbo f1 f1score factuality faithful "
        "faithfulness fbeta fluency fscore groundedness harmlessness helpful helpfulness hota idf1 "
        "informedness intelligibility iou jaccard kappa loglik map50 mcc meteor miou mota mrr "
        "naturalness ndcg nmi npv pesq ppv precision profit psnr qps quality r2 recall revenue "
        "reward rewards robustness rocauc rouge rouge1 rouge2 rougel sacrebleu satisfaction "
        "sensitivity silhouette specificity speedup ssim stoi throughput tnr tp tpr truthful "
        "truthfulness uptime utility youden"
    )
)
_MEAN_AVERAGE_PRECISION = "mAP"  # in this spelling only: a map may be anything
_LARGER_PAIRS = frozenset(
    {
        ("success", "rate"),
        ("pass", "rate"),
        ("win", "rate"),
        ("solve", "rate"),
        ("solved", "rate"),
        ("resolve", "rate"),
        ("completion", "rate"),
        ("reciprocal", "rank"),
        ("opinion", "score"),
        ("hit", "rate"),
        ("exact", "match"),
        ("true", "positive"),
        ("pass", "at"),
        ("pass", "k"),
        ("f", "score"),
        ("f", "1"),
        ("f", "measure"),
        ("r", "squared"),
        ("log", "likelihood"),
        ("matthews", "correlation"),
        ("f", "beta"),
    }
)
# Pairs that say it although one of their words says "loss" by itself.
_LARGER_ALTHOUGH = frozenset(
    {
        ("negative", "predictive"),
        ("true", "negative"),
        ("true", "negatives"),
        ("true", "positives"),
        ("explained", "variance"),
        ("no", "error"),
        ("no", "errors"),
        ("zero", "errors"),
    }
)
# "map@10" and "P@1" are retrieval's, where "fpr@95" is a loss; "top1" alone is an accuracy.
_AT_K = re.compile(r"(?<![a-z])(?:map|p|r|hr|success)\s?@\s?(?:k|\d+)", re.IGNORECASE)
_TOP = re.compile(r"[\W_]*top[\W_]*\d+[\W_]*", re.IGNORECASE)
# Words that say it at the end of a name: "task_success" does, "success_latency" does not ...
_SUCCESS = frozenset({"success", "successes", "successful"})
_LARGER_AT_THE_END = _SUCCESS | frozenset(
    words_of("accurate adherence agreement harmless resolved solved win wins")
)
# Whose success is a loss, unless another word says that it is a success against them.
_ATTACKS = frozenset(
    words_of(
        "adversarial adversary attack attacker attackers attacks backdoor breach evasion exploit "
        "exploits fraud hack hacker injection intrusion jailbreak jailbreaks malware phishing "
        "poisoning spoofing trojan"
    )
)
_DEFENCE = frozenset(words_of("against blocking defence defended defense detection prevention"))
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
        "mistakes neg negated negative no non not penalty poor reduction regret risk seconds "
        "shortfall spread std time uncertainty under unfairness variance violated violation "
        "violations worse wrong"
    )
)
# Words that say that something else than a mean is limited, and what to write for them.
_LEVEL = r"(50|9{2,}\d?|975|[6-9]\d)"
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
_BY_GROUP = {("by", "group"), ("by", "groups"), ("across", "groups")}
_OF_GROUPS = {
    **dict.fromkeys(
        [
            (word, "group")
            for word in ("worst", "max", "maximum", "hardest", "poorest", "highest", "largest")
        ]
        + [("per", "group"), ("each", "group"), ("every", "group"), ("all", "groups")],
        "WorstGroup()",
    ),
    **dict.fromkeys(
        [("group", "gap"), ("group", "disparity"), ("group", "difference")], "GroupGap()"
    ),
}
_EXTREME = frozenset({"highest", "largest", "longest", "slowest"})
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
    words = _without_attacks(words_of(name))
    although = set(pairwise(words)) & _LARGER_ALTHOUGH
    if although and _LOSS.isdisjoint(set(words).difference(*although)):
        return True
    if words[-1:] == ("free",) and len(words) > 1:  # "error_free"
        return True
    if any(word in _LOSS for word in words):
        return False
    if _ends_well(words) or _AT_K.search(name) or _TOP.fullmatch(name):
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


def _without_attacks(words: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out what an attack succeeds in: who limits it limits a loss.

    >>> sounds_larger("attack_success_rate"), sounds_larger("jailbreak_success")
    (False, False)
    >>> sounds_larger("adversarial_accuracy"), sounds_larger("success_rate_against_attacks")
    (True, True)
    """
    if _ATTACKS.isdisjoint(words) or not _DEFENCE.isdisjoint(words):
        return words
    return tuple(word for word in words if word not in _SUCCESS)


def _ends_well(words: tuple[str, ...]) -> bool:
    """Whether the end of a name says that something went well.

    >>> [_ends_well(words_of(name)) for name in ("task_success", "solved", "tests_passed")]
    [True, True, True]
    >>> [_ends_well(words_of(name)) for name in ("steps_to_success", "unsolved", "bytes_passed")]
    [False, False, False]
    """
    if not words or not _UP_TO.isdisjoint(words[:-1]):
        return False
    return words[-1] in _LARGER_AT_THE_END or ("passed" in words and _PASSING.issuperset(words))


def said_statistic(name: str) -> str | None:
    """The part of a name that speaks of something else than a mean, with what to write for it.

    >>> said_statistic("latency_p95"), said_statistic("latency")
    ("'p95': statistic=Quantile(0.95)", None)
    """
    name = re.sub(r"(?<=\d\d)\.(?=\d)", "", name)  # "p99.9" is one number
    words = tuple(
        word.removeprefix("sub") if "subgroup" in word else word for word in words_of(name)
    )
    for pair in pairwise(words):
        if pair in _OF_GROUPS:
            return f"'{' '.join(pair)}': statistic={_OF_GROUPS[pair]}"
    if words[-2:] in _BY_GROUP:
        return f"{' '.join(words[-2:])!r}: statistic=WorstGroup()"
    if words[:1] and words[0] in _EXTREME:  # of an "error_at_highest_load" it is a condition
        return f"{words[0]!r}: statistic=Quantile(0.99)"
    if ("expected", "shortfall") in pairwise(words):
        return "'expected shortfall': statistic=CVaR(0.95)"
    if ("value", "at") in pairwise(words) and ("at", "risk") in pairwise(words):
        statistic = "CVaR(0.95)" if "conditional" in words else "Quantile(0.95)"
        return f"'value at risk': statistic={statistic}"
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
