"""Names, their meaning and their notation: one registry, one grammar."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

import riskpilot as rp
from riskpilot.problem.metrics import METRICS
from riskpilot.problem.names import (
    ALIASES,
    KNOWN,
    Meaning,
    check_direction,
    check_limit,
    larger_is_better,
    meaning,
    statistic_of,
    subject,
)
from riskpilot.problem.notation import parse_risk
from riskpilot.problem.sounds import said_statistic, sounds_larger
from riskpilot.statistics import STATISTICS
from riskpilot.statistics.means import OneMean

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "risks.md"


@pytest.mark.parametrize("name", METRICS)
def test_the_guide_says_of_every_metric_what_its_losses_are(name):
    direction = "at_least" if METRICS[name].better_when_larger else "at_most"
    row = f"| `{name}` | `{direction}` | {METRICS[name].loss_words} |"
    assert row in GUIDE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*KNOWN, *ALIASES])
def test_every_known_name_makes_a_risk_of_its_own_direction_and_statistic(name):
    known = meaning(name)
    if "drop" in name and known.metric.condition == "prediction":
        with pytest.raises(rp.ProblemError, match="counts other examples"):
            rp.Risk(name)
        return
    open_risk = rp.Risk(name)
    closed = open_risk.with_bound(0.3)
    assert closed == rp.Risk(name, **{"at_least" if closed.complement else "at_most": 0.3})
    assert closed.complement == larger_is_better(known, closed.statistic)
    assert closed.conditional == known.metric.conditional
    assert closed.statistic == (known.statistic or rp.Mean())
    assert closed.bound == 0.3
    assert rp.Risk.from_dict(closed.to_dict()) == closed
    assert closed.loss_words.startswith("1 where ")


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_name_can_be_minimised_or_says_what_to_minimise_instead(name):
    risks = [rp.Risk("harm", 0.1)]
    known = KNOWN[name]
    if not known.better_when_larger:
        rp.Problem(risks, minimize=name)
        return
    with pytest.raises(rp.ProblemError, match=known.opposite):
        rp.Problem(risks, minimize=name)
    rp.Problem(risks, minimize=known.opposite)


@pytest.mark.parametrize(
    "name", ["False positive rate", "false-positive-rate", "FPR", "falsePositiveRate"]
)
def test_spelling_does_not_change_what_a_name_means(name):
    assert meaning(name) is KNOWN["false_positive_rate"]
    assert rp.Risk(name, 0.1).conditional
    assert rp.Risk(name, 0.1).name == name


LARGER = """
    acc auc roc_auc ROC-AUC AUROC f1 F1-score f1_score val_precision test_recall TPR reward
    meanReward r2 mIoU IoU dice BLEU rouge success_rate pass_rate win-rate hit_rate exact_match
    successrate winRate valaccuracy
    mAP val_mAP correct is_correct isCorrect answer_quality helpfulness faithfulness uptime
    availability fbeta tp utility success task_success taskSuccess is_successful correctness
    answer_correctness accurate is_accurate solved is_solved problems_solved solve_rate passed
    all_tests_passed has_passed groundedness pass@10 hits@5 top5_accuracy
    balanced_accuracy empirical_coverage
    adversarial_accuracy success_rate_against_attacks defense_success top1 top_1 map@10 P@1
    success@5 negative_predictive_value true_negatives explained_variance solved_rate passed_tests
    wins error_free no_errors mean_reciprocal_rank log_likelihood faithful rouge1
    mean_opinion_score adherence
"""
LOSSES = """
    accuracy_drop recall_gap auc_loss error 1-accuracy one_minus_f1 -reward missed_recall
    coverage_gap low_precision reward_regret negative_reward miscoverage inaccuracy ddp abstention
    cost latency harm flagged kld reconstruction missed false_alarm error_rate utility_loss
    coverage_error accuracy_difference time_to_accuracy recallable macaroni map heat_map
    incorrect quality_loss unavailability unsuccessful not_solved unsolved no_success
    failure_to_pass fail_to_pass not_passed bytes_passed arguments_passed seconds_passed inaccurate
    less_accurate ungroundedness incorrectness steps_to_success tokens_per_success
    attempts_until_solved success_latency cost_of_success lack_of_success harm_if_solved
    attack_success_rate attack_success adversarial_success_rate jailbreak_success poor_quality
    prompt_injection_success exploit_success fpr@95 negative_log_likelihood unexplained_variance
    noncompliance harmful_compliance pii_detection_rate
"""


@pytest.mark.parametrize("name", LARGER.split())
def test_words_for_larger_is_better_are_heard(name):
    assert sounds_larger(name)


@pytest.mark.parametrize("name", LOSSES.split())
def test_losses_are_not_taken_for_more_than_they_are(name):
    assert not sounds_larger(name)
    assert rp.Problem([rp.Risk("harm_", 0.1)], minimize=name).minimize == name


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("false_positive_rate_difference", "GroupGap"),
        ("fpr_difference", "GroupGap"),
        ("difference_in_error", "Difference"),
        ("selection_rate_ratio", "Ratio"),
        ("ratio_of_false_positive_rate", "Ratio"),
        ("group_gap_error", "GroupGap"),
        ("highest_error", "Quantile"),
        ("error_by_group", "WorstGroup"),
        ("harm_per_group", "WorstGroup"),
        ("per_group_error", "WorstGroup"),
        ("every_group_error", "WorstGroup"),
        ("max_group_harm", "WorstGroup"),
        ("worst_subgroup_harm", "WorstGroup"),
        ("group_disparity", "GroupGap"),
        ("largest_harm", "Quantile"),
        ("value_at_risk", "Quantile"),
        ("expected_shortfall", "CVaR"),
    ],
)
def test_a_name_that_compares_or_parts_is_no_plain_mean(name, statistic):
    with pytest.raises(rp.ProblemError, match=rf"statistic=.*{statistic}\("):
        rp.Risk(name, 0.1)
    assert rp.Risk(name, 0.1, statistic=rp.Mean()).limit == 0.1


MEANS = """
    absolute_difference image_difference error_ratio compression_ratio rate_ratio difference ratio
    group_error error_at_highest_load grouped_error gap_penalty group_size_penalty loss_per_item
"""


@pytest.mark.parametrize("name", MEANS.split())
def test_a_name_that_only_looks_like_a_comparison_is_a_mean(name):
    assert rp.Risk(name, 0.1).statistic == rp.Mean()


SAME = {
    "worst_group_error": "worstgrouperror worst_grouperror WORSTGROUPERROR error_worst_group",
    "error_gap": "errorgap gap_error ErrorGap gapInError",
    "accuracy_gap": "gap_accuracy gap-of-accuracy",
    "fpr_gap": "FPRGap fprgap gap_between_groups_in_fpr",
    "false_positive_rate": "falsepositiverate rate_of_false_positive false_positiverate",
    "true_positive_rate": "truepositiverate TruePositiveRate",
    "selective_error": "selectiveerror",
    "accuracy_drop": "accuracydrop drop_in_accuracy",
    "demographic_parity_gap": "demographicparitygap demographic_parity_difference",
    "equalized_odds_gap": "equalizedoddsgap equalised_odds_gap EqualisedOddsGap",
    "recall": "recall\u200b Recall\u0301 \uff32\uff25\uff23\uff21\uff2c\uff2c",
}


@pytest.mark.parametrize(
    ("name", "other"), [(name, other) for name, others in SAME.items() for other in others.split()]
)
def test_joined_reordered_and_british_spellings_are_the_same_name(name, other):
    assert meaning(other) == meaning(name)
    assert rp.Risk(other) == replace(rp.Risk(name), name=other)


def test_no_two_known_names_have_the_same_letters_or_the_same_words():
    names = {**{name: name for name in KNOWN}, **ALIASES}
    for key in (lambda name: name.replace("_", ""), lambda name: tuple(sorted(name.split("_")))):
        found = {}
        for name, meant in names.items():
            assert found.setdefault(key(name), meant) == meant


@pytest.mark.parametrize("name", ["equalised_odds", "demographicparity", "equal_opportunity"])
def test_half_a_name_of_fairness_is_refused_with_the_whole_one(name):
    with pytest.raises(rp.ProblemError, match=r"statistic=GroupGap"):
        rp.Risk(name, 0.1)


def test_a_slip_in_a_name_of_groups_is_refused_with_the_right_one():
    with pytest.raises(rp.ProblemError, match="Did you mean 'recall_gap'"):
        rp.Risk("recal_gap", 0.1)


MORE_THAN_A_MEAN = """
    latency_p95 P95 p_95 p95latency p95Latency q95 q_99 latency-95th 95pct latency_95% 99.9%_latency
    tail_latency worst_harm max_latency maxLatency maximum decile top_decile top10%_cost top-cost
    median_cost cvar worst_group_harm harm_gap harm_drop gap_in_harm harmgap worstgroupharm
    maxlatency latencymax mediancost generalisation_gap
"""
A_MEAN = """
    latency top5_error top-5-error top_1_miss p1 q4 p5 step_95 maximal worsted p7 http99 95 tailored
    cost toxicity gap_penalty gap_length gap_size raindrop dropout drop_rate dropped_calls stopgap
    gap drop backdrop err errors harm losses refusal tokens wait_time runtime peak_memory regret
    minmax lifetime downtime timeloss harmful opportunity_cost parity_error odds age_gap_years
    harm_ratio harm_difference
"""


@pytest.mark.parametrize("name", MORE_THAN_A_MEAN.split())
def test_names_that_say_more_than_a_mean_need_a_statistic(name):
    with pytest.raises(rp.ProblemError, match="says"):
        rp.Risk(name, 0.1)
    assert rp.Risk(name, 0.1, statistic=rp.Mean()).name == name


@pytest.mark.parametrize(
    ("name", "level"), [("latency_p99.9", "0.999"), ("p97.5_cost", "0.975"), ("99.9th", "0.999")]
)
def test_a_level_with_a_fraction_is_named_whole(name, level):
    with pytest.raises(rp.ProblemError, match=rf"Quantile\({level}\)"):
        rp.Risk(name, 0.1)


def test_the_success_of_an_attack_is_a_loss_and_has_no_lower_limit():
    assert rp.Risk("attack_success_rate", 0.1).limit == 0.1
    with pytest.raises(rp.ProblemError, match="at_least goes with"):
        rp.Risk("attack_success_rate", at_least=0.9)


@pytest.mark.parametrize("name", A_MEAN.split())
def test_names_of_means_need_no_statistic(name):
    assert said_statistic(name) is None
    assert rp.Risk(name, 0.1).statistic == rp.Mean()


def test_a_drop_is_known_of_every_metric_that_has_pairs():
    assert rp.Risk("error_drop", 0.1).statistic == rp.Difference()
    assert rp.Risk("fpr_drop", 0.1) == rp.Risk("fpr_drop", at_most=0.1, statistic=rp.Difference())
    with pytest.raises(rp.ProblemError, match="counts other examples"):
        rp.Risk("selective_error_drop", 0.1)


@pytest.mark.parametrize(
    "text",
    [
        "error<=0.1 as worst_group by sex in [0,2] conditional",
        "error<=0.1 by sex as worst_group conditional in [0,2]",
        "error <= 0.1  conditional in [ 0 , 2 ] by sex as worst_group",
    ],
)
def test_clauses_come_in_any_order(text):
    statistic = rp.WorstGroup()
    expected = rp.Risk("error", 0.1, high=2, conditional=True, statistic=statistic, groups="sex")
    assert parse_risk(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("error<=0.1 as worst_group as worst_group", "'as' twice"),
        ("error<=0.1 by sex", "knows no groups"),
        ("error<=0.1 somehow", "NAME<=NUMBER"),
        ("error<=0.1 as quantile(high)", "'high'"),
        ("error<=0.1 as median", "'median'"),
        ("error<=0.1 as worst_group(0.9)", "no argument"),
        ("error<=nan", "'nan'"),
        ("error<=1e999", "'1e999'"),
        ("precision<=0.9", r"at_least=0\.9"),
        ("accuracy_drop>=0.9", "at_most="),
        ("precison>=0.9", "Did you mean 'precision'"),
        ("worst_group_error<=0.1 as quantile(0.9)", "WorstGroup"),
        ("recall<=0.1 as group_gap by sex weighted by w up to 2", "weighted"),
        (b"error<=0.1", "NAME<=NUMBER"),
        (None, "NAME<=NUMBER"),
    ],
)
def test_a_text_that_cannot_be_meant_is_refused_in_words(text, says):
    with pytest.raises(rp.ProblemError, match=says):
        parse_risk(text)


@pytest.mark.parametrize(
    ("text", "risk"),
    [
        ("precision ≥ 0.9", rp.Risk("precision", at_least=0.9)),
        ("worst_group_error<=0.2 by sex", rp.Risk("worst_group_error", 0.2, groups="sex")),
        ("recall<=0.1 as group_gap", rp.Risk("recall", at_most=0.1, statistic=rp.GroupGap())),
        ("rate>=0.8 as ratio", rp.Risk("rate", at_least=0.8, statistic=rp.Ratio())),
        ("fpr<=0.1", rp.Risk("fpr", 0.1, conditional=True)),
    ],
)
def test_a_text_means_what_the_risk_means(text, risk):
    assert parse_risk(text) == risk


@dataclass(frozen=True)
class Slump(OneMean):
    """A statistic that no other module knows: it alone says how names go with it."""

    kind: ClassVar[str] = "slump"
    noun: ClassVar[str] = "slump"
    of_losses: ClassVar[bool] = False
    p_values: ClassVar[tuple[str, ...]] = ("auto",)
    steers: ClassVar[bool] = False

    since: str = "before"

    @property
    def of_complements(self):
        return self.since == "before"

    @property
    def reference_name(self):
        return self.since

    def better_when_larger(self, metric):
        return False

    def words(self, *, by=None, larger=False):
        return "slump"

    def value_range(self, low, high):
        return low, high

    def auto(self, binary):
        return "betting"

    def _log_p(self, sample, rows, settings, limit):
        raise NotImplementedError


def test_a_new_statistic_answers_for_itself_what_names_and_directions_it_goes_with():
    assert not larger_is_better(meaning("recall"), Slump())
    assert subject("recall", Slump(), lower=False) == "slump of recall"
    assert subject("error", Slump(), lower=False) == "error"
    check_limit("my_accuracy", Slump(), 0.1)  # it is not of losses, so that the name may say it
    with pytest.raises(rp.ProblemError, match="A slump of 'recall' is better when smaller"):
        check_direction("recall", Slump(), 0.1, lower=True)
    with pytest.raises(rp.ProblemError, match="not that of 'recall'"):
        statistic_of("recall", Slump("after"))
    with pytest.raises(rp.ProblemError, match="counts other examples"):
        statistic_of("precision", Slump())
    assert Meaning(METRICS["error"], Slump()).loss_words.endswith("those of the reference likewise")


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_notation_reads_the_argument_that_a_statistic_names(statistic):
    by = " by sex" if statistic.needs_groups else ""
    if statistic.argument is None:
        with pytest.raises(rp.ProblemError, match="takes no argument"):
            parse_risk(f"cost <= 0.2 as {statistic.kind}(0.9){by}")
        return
    field, holds = statistic.argument
    risk = parse_risk(f"cost <= 0.2 as {statistic.kind}(0.9){by}")
    assert getattr(risk.statistic, field) == holds("0.9")


def test_the_notation_lists_the_statistics_where_one_is_none_of_them():
    with pytest.raises(rp.ProblemError, match=r"'nothing' in .* is no statistic") as error:
        parse_risk("error<=0.2 as nothing(0.9)")
    assert all(statistic.kind in str(error.value) for statistic in STATISTICS)


def test_an_error_lists_every_statistic_that_there_is():
    with pytest.raises(rp.ProblemError) as error:
        rp.Risk("cost", 0.2, statistic="mean")
    assert all(f"{statistic.__name__}()" in str(error.value) for statistic in STATISTICS)
