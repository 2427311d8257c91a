"""Colours that mean different things look different to colour-blind readers, and so do markers."""

import itertools
import re

import numpy as np
import pytest

from riskpilot.plots.library import asset
from riskpilot.plots.style import PALETTE
from tests.pictures.figures import every_figure

# Machado, Oliveira and Fernandes (2009): what is seen without one kind of cones, in linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
LEAST = 15.0  # CIELAB; about 2.3 can just be told apart side by side


def linear(colour):
    """A colour such as #0072B2 in linear RGB."""
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """Linear RGB in CIELAB."""
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one, other, vision):
    seen = VISIONS[vision]
    return float(np.linalg.norm(lab(seen @ linear(one)) - lab(seen @ linear(other))))


def contrast(one, other):
    """WCAG's ratio of luminances."""
    low, high = sorted(TO_XYZ[1] @ linear(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_distances_are_those_of_cielab():
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.01)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    for seen in VISIONS.values():  # white stays white
        assert seen @ np.ones(3) == pytest.approx(np.ones(3), abs=1e-5)
    assert distance("#8A8A8A", "#009E73", "deuteranopia") < 10  # a grey that some see as green


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_of_figures_stand_apart(vision):
    pairs = itertools.combinations(PALETTE, 2)
    close = {pair: distance(*pair, vision) for pair in pairs}
    assert {pair: d for pair, d in close.items() if d < LEAST} == {}


@pytest.mark.parametrize("vision", VISIONS)
def test_a_good_and_a_bad_verdict_stand_apart_and_are_legible(vision):
    css = asset("page.css").decode()
    schemes = [dict(re.findall(r"--(\w[\w-]*): (#\w{6})\b", part)) for part in css.split("}")[:2]]
    assert len(schemes) == 2
    for colours in schemes:
        assert distance(colours["good"], colours["bad"], vision) > LEAST
        for name in ("good", "bad", "ink", "soft-ink", "link"):
            assert contrast(colours[name], colours["paper"]) > 4.5
            assert contrast(colours[name], colours["soft"]) > 4.5


def test_markers_of_different_meaning_have_different_shapes(search):
    for figure in every_figure(search):
        shapes = {}
        for trace in figure.data:
            known = trace.x is not None and any(x is not None for x in trace.x)
            if known and "markers" in (trace.mode or ""):
                place = (trace.xaxis, trace.yaxis, trace.marker.symbol or "circle")
                shapes.setdefault(place, set()).add(trace.name)
        assert {place: names for place, names in shapes.items() if len(names) > 1} == {}
