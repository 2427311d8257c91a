"""What errors say: the article before the name of a type."""

import re
from pathlib import Path

import numpy as np
import pytest

import riskpilot as rp
from riskpilot.errors import with_article


@pytest.mark.parametrize(
    "words",
    [
        "an int",
        "an Evaluation",
        "an ndarray",
        "an NDFrame",
        "an OSError",
        "an 8% quantile",
        "an 80% quantile",
        "an 11% quantile",
        "a 95% quantile",
        "a 1.5% quantile",
        "a str",
        "a NoneType",
        "a CVaR",
        "a uint8",
        "a UserDict",
        "a UUID",
    ],
)
def test_the_article_goes_with_the_sound_of_the_word(words):
    assert with_article(words.split(" ", 1)[1]) == words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rp.create_study(3), "got an int"),
        (lambda: rp.GuidedSampler(np.zeros(2)), "got an ndarray"),
        (lambda: rp.Evaluation(validation=rp.Evaluation({})), "it is an Evaluation"),
        (lambda: rp.verify(3), "got an int"),
        (lambda: rp.Risk("accuracy", 0.9), "for an accuracy of at least 0.9"),
    ],
)
def test_messages_have_the_article_of_what_they_name(call, words):
    with pytest.raises(rp.RiskpilotError, match=words):
        call()


def test_no_message_has_an_article_before_the_name_of_a_type():
    """`type_in_words` writes the one that goes with it."""
    a_type = re.compile(r'\ban? ("\s*f["\'])?\{type\(')
    root = Path(rp.__file__).parent
    assert [path for path in root.rglob("*.py") if a_type.search(path.read_text())] == []
