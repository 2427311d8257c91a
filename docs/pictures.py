"""Draw the pictures of the documentation into docs/images: ``python -m docs.pictures``.

Numbers in them are computed here, by riskpilot itself. The pictures take their colours from the
page they stand in, so that they follow its light or dark theme.
"""

import html
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import riskpilot as rp
from docs.rooms import Room, layers
from riskpilot.guarantee import interval
from riskpilot.statistics import largest_passing_mean

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"

# Okabe and Ito's colours, told apart by colour-blind readers.
_STYLE = """
.rp{--ink:#1f2328;--soft:#656d76;--line:#c4cad1;--fill:#eef1f4;--good:#00805d;--bad:#c74a00;
--blue:#0072b2;--paper:#fff;font:14px system-ui,sans-serif}
@media(prefers-color-scheme:dark){.rp{--ink:#e6e8eb;--soft:#a3abb5;--line:#4a525c;--fill:#2b3038;
--good:#3ecfa0;--bad:#ff9a52;--blue:#63b7ee;--paper:#1e2129}}
.rp text{fill:var(--ink)}.rp .soft{fill:var(--soft)}.rp .b{font-weight:600}
.rp .small{font-size:12px}
.rp .good{fill:var(--good)}.rp .bad{fill:var(--bad)}.rp .blue{fill:var(--blue)}
.rp .box{fill:var(--fill);stroke:var(--line)}.rp .axis{stroke:var(--ink);fill:none}
.rp .line{stroke:var(--line);fill:none}.rp .gl{stroke:var(--good);fill:none;stroke-width:2}
.rp .bl{stroke:var(--bad);fill:none;stroke-width:2}
.rp .ul{stroke:var(--blue);fill:none;stroke-width:2}
.rp .il{stroke:var(--ink);fill:none;stroke-width:1.5}.rp .dash{stroke-dasharray:6 4}
.rp .ga{fill:var(--good);opacity:.16}.rp .ba{fill:var(--bad);opacity:.16}
.rp .ua{fill:var(--blue);opacity:.16}.rp .sa{fill:var(--soft);opacity:.16}.rp .ink{fill:var(--ink)}
.rp .open{fill:var(--paper);stroke:var(--ink);stroke-width:1.5}
"""


class Drawing:
    """A few shapes; coordinates are pixels, y grows downwards."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
            f"{html.escape(words)}</text>"
        )

    def rect(self, x: float, y: float, w: float, h: float, kind: str = "box", r: int = 0) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{r}" '
            f'class="{kind}"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str = "axis") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="{kind}"/>')

    def area(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" class="{kind}"/>')

    def dot(self, x: float, y: float, kind: str, r: float = 4) -> None:
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" class="{kind}"/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.line([(x1, y1), (x2, y2)], "il")
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        self.area(
            [
                (x2, y2),
                (x2 - 9 * ux + 4 * uy, y2 - 9 * uy - 4 * ux),
                (x2 - 9 * ux - 4 * uy, y2 - 9 * uy + 4 * ux),
            ],
            "ink",
        )

    def box(self, x: float, y: float, w: float, h: float, lines: Sequence[str]) -> None:
        """The first line in bold."""
        self.rect(x, y, w, h, "box", 6)
        top = y + h / 2 - 9 * (len(lines) - 1) + 5
        for i, words in enumerate(lines):
            kind = "b" if i == 0 else "soft"
            self.text(x + w / 2, top + 18 * i, words, kind, "middle")

    def svg(self) -> str:
        body = "\n".join(self.parts)
        style = _STYLE.replace("\n", "")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rp" role="img" '
            f'viewBox="0 0 {self.width} {self.height}" style="max-width:{self.width}px">\n'
            f"<title>{html.escape(self.title)}</title>\n<style>{style}</style>\n{body}\n</svg>\n"
        )


def flow() -> Drawing:
    d = Drawing(860, 210, "From limits to a certificate: search and plan see validation data only")
    steps = [
        ["Problem", "limits, objective,", "delta"],
        ["Search", "proposes what to", "evaluate next"],
        ["Plan", "candidates, order,", "tests: frozen"],
        ["Test", "p-values, until", "one fails"],
        ["Certificate", "the best that", "passed, or nothing"],
    ]
    for i, lines in enumerate(steps):
        d.box(10 + 172 * i, 20, 148, 84, lines)
        if i:
            d.arrow(10 + 172 * i - 22, 62, 10 + 172 * i - 4, 62)
    d.rect(182, 150, 320, 40, "ua", 6)
    d.text(342, 175, "validation data: look as often as you like", "blue", "middle")
    d.rect(526, 150, 148, 40, "ga", 6)
    d.text(600, 175, "calibration data", "good", "middle")
    for x in (256, 428):
        d.arrow(x, 148, x, 108)
    d.arrow(600, 148, 600, 108)
    d.text(612, 132, "sealed until here", "soft")
    return d


def splits() -> Drawing:
    d = Drawing(860, 190, "Which part of the data may be used for what")
    parts = [
        (10, 330, "sa", "training", "fits the models"),
        (350, 240, "ua", "validation", "search, filter, order"),
        (600, 250, "ga", "calibration", "the test, and nothing else"),
    ]
    for x, w, kind, name, use in parts:
        d.rect(x, 20, w, 60, kind, 6)
        d.text(x + w / 2, 46, name, "b", "middle")
        d.text(x + w / 2, 66, use, "soft", "middle")
    d.line([(10, 100), (10, 108), (590, 108), (590, 100)], "axis")
    d.text(300, 130, "look, tune, retrain, look again: all of it is allowed", "", "middle")
    d.line([(600, 100), (600, 108), (850, 108), (850, 100)], "gl")
    d.text(725, 130, "one look, after the plan is frozen", "good", "middle")
    d.text(725, 150, "each further question is numbered", "soft", "middle")
    return d


def draws() -> Drawing:
    """Two habits on the same 100 draws of data, for a problem whose true risks are known."""
    limit, m, n_draws = 0.10, 1000, 100
    truth = np.linspace(0.0401, 0.1599, 120)  # the true risk of each configuration
    cost = 1 - truth  # safer costs more
    problem = rp.Problem([rp.Risk("error", limit)], minimize="cost", delta=0.1)
    rng = np.random.default_rng(0)
    certified: list[float] = []
    usual: list[float] = []
    for _ in range(n_draws):
        seen, sealed = rng.random((m, 1)), rng.random((m, 1))  # one difficulty per example
        validation, calibration = (seen < truth).T, (sealed < truth).T
        chosen = rp.select_from_losses(
            problem,
            validation={"error": validation, "cost": cost},
            calibration={"error": calibration},
        ).config
        if chosen is not None:
            certified.append(truth[chosen["index"]])
        means = np.concatenate([validation, calibration], axis=1).mean(axis=1)
        usual.append(truth[np.flatnonzero(means <= limit)[-1]])
    d = Drawing(860, 330, "True risk of the choice over 100 draws of the data")
    panels = [
        (60, "usual: measured risk within the limit", usual),
        (480, "riskpilot, delta = 0.1", certified),
    ]
    for left, name, risks in panels:
        width, top, bottom = 340, 60, 270

        def y(risk: float, top: int = top, bottom: int = bottom) -> float:
            return bottom - (risk - 0.06) / 0.06 * (bottom - top)

        broken = sum(risk > limit + 1e-12 for risk in risks)
        d.text(left, 24, name, "b")
        d.text(left, 44, f"limit broken in {broken} of {len(risks)} draws", "bad")
        d.line([(left, top), (left, bottom), (left + width, bottom)])
        for tick in (0.06, 0.08, 0.10, 0.12):
            d.text(left - 8, y(tick) + 4, f"{tick:.2f}", "soft", "end")
        d.line([(left, y(limit)), (left + width, y(limit))], "il dash")
        d.text(left + width, y(limit) - 6, "limit", "", "end")
        for i, risk in enumerate(risks):
            kind = "bad" if risk > limit + 1e-12 else "good"
            d.dot(left + width * (i + 0.5) / n_draws, y(risk), kind, 3)
        d.text(
            left + width / 2, 292, "100 draws of validation and calibration data", "soft", "middle"
        )
    d.text(
        60, 320, "true risk of what was chosen, known here because the data is simulated", "soft"
    )
    return d


def region() -> Drawing:
    """The paper's worked example: limit 0.05, m = k = 5000, delta = 0.1, delta' = 0.0001."""
    part = interval(
        rp.Risk("error", 0.05),
        "hoeffding",
        n_validation=5000,
        n_calibration=5000,
        delta=0.1,
        delta_prime=1e-4,
    )
    d = Drawing(860, 400, "Region of interest on the plane of risk and free objective")
    left, right, top, bottom = 60, 830, 50, 320

    def x(risk: float) -> float:
        return left + risk / 0.09 * (right - left)

    def y(free: float) -> float:
        return bottom - free * (bottom - top)

    def front(risk: float) -> float:
        return 0.06 + 0.9 / (1 + 45 * risk)

    bands = [
        (0.0, part.low, "sa", "too safe:", "wastes the objective"),
        (part.low, part.high, "ga", "region of interest:", "the test will be a close call"),
        (part.high, 0.09, "ba", "too risky:", "will fail the test"),
    ]
    for start, stop, kind, *words in bands:
        d.rect(x(start), top, x(stop) - x(start), bottom - top, kind)
        middle = (x(start) + x(stop)) / 2
        if kind == "sa":
            d.text(x(start) + 2, 20, words[0], "soft")
            d.text(x(start) + 2, 38, words[1], "soft")
        else:
            colour = {"ga": "good", "ba": "bad"}[kind]
            d.text(middle + (90 if kind == "ga" else 0), 20, words[0], colour, "middle")
            d.text(middle + (90 if kind == "ga" else 0), 38, words[1], "soft", "middle")
    d.line([(left, top), (left, bottom), (right, bottom)])
    d.line([(x(r), y(front(r))) for r in np.linspace(0.0005, 0.088, 80)], "ul")
    d.text(x(0.0885), y(front(0.088)) - 10, "Pareto front", "blue", "end")
    for value, name, kind in (
        (part.low, f"low {part.low:.4f}", "soft"),
        (part.alpha_max, f"largest mean that passes {part.alpha_max:.4f}", "good"),
        (0.05, "limit 0.05", ""),
        (part.high, f"high {part.high:.4f}", "soft"),
    ):
        lower = value == 0.05
        d.line([(x(value), top), (x(value), bottom + (24 if lower else 6))], "il dash")
        d.text(x(value), bottom + (40 if lower else 22), name, kind, "middle")
    reference = front(part.low)
    d.line([(x(part.low), y(reference)), (x(part.high), y(reference))], "bl dash")
    d.dot(x(part.high), y(reference), "bad", 6)
    d.text(x(part.high) + 12, y(reference) + 5, "reference point", "bad")
    d.text((left + right) / 2, 392, "risk on validation data", "soft", "middle")
    d.parts.append(
        f'<text transform="translate(30 {(top + bottom) / 2}) rotate(-90)" class="soft" '
        f'text-anchor="middle">free objective</text>'
    )
    return d


def sequence() -> Drawing:
    d = Drawing(860, 300, "Fixed sequence: test in the frozen order, stop at the first failure")
    p_values = [0.002, 0.006, 0.011, 0.03, 0.055, 0.14, 0.02, 0.17]
    left, bottom, top, delta = 70, 240, 50, 0.1
    width = 84

    def y(p: float) -> float:
        return bottom - p / 0.2 * (bottom - top)

    failed = next(i for i, p in enumerate(p_values) if p >= delta)
    for i, p in enumerate(p_values):
        middle = left + width * (i + 0.5)
        kind = "good" if i < failed else "bad" if i == failed else "sa"
        d.rect(middle - 22, y(p), 44, bottom - y(p), kind)
        d.text(middle, bottom + 20, str(i + 1), "soft", "middle")
        word = "passes" if i < failed else "fails" if i == failed else "not tested"
        d.text(
            middle,
            y(p) - 8,
            word,
            "good" if i < failed else "bad" if i == failed else "soft",
            "middle",
        )
    d.line([(left, top), (left, bottom), (left + width * len(p_values), bottom)])
    d.line([(left, y(delta)), (left + width * len(p_values), y(delta))], "il dash")
    d.text(left + width * len(p_values) + 8, y(delta) + 5, "delta")
    d.text(left - 8, top + 6, "p", "soft", "end")
    d.text(left, 278, "candidates in the order that validation data gave; safest first", "soft")
    d.line(
        [(left + width * failed + width, top - 26), (left + width * failed + width, bottom)], "bl"
    )
    d.text(left + width * failed + width + 8, top - 14, "the test ends here", "bad")
    return d


def labels() -> Drawing:
    d = Drawing(860, 320, "Labels one by one: certified where the share of losses meets a boundary")
    problem = rp.Problem([rp.Risk("error", 0.1)], "cost")
    (plan,) = rp.plan_labels(problem, 1000, true_risks={"error": 0.07})
    label = np.arange(1, plan.horizon + 1)
    critical = np.searchsorted(np.array(plan.steps), label, side="right") - 1
    left, right, top, bottom = 70, 740, 30, 260

    def at(t: float, share: float) -> tuple[float, float]:
        return left + t / plan.horizon * (right - left), bottom - share / 0.16 * (bottom - top)

    some = np.flatnonzero(critical >= 0)[::5]
    d.line([at(label[i], critical[i] / label[i]) for i in some], "ul")
    draws = np.random.default_rng(1).random((3, plan.horizon))
    for risk, draw in zip((0.05, 0.07, 0.1), draws, strict=True):
        share = np.add.accumulate(draw < risk) / label
        crossed = np.flatnonzero(np.add.accumulate(draw < risk) <= critical)
        end = int(crossed[0]) if len(crossed) else plan.horizon - 1
        kind = "gl" if len(crossed) else "bl"
        d.line([at(label[i], min(share[i], 0.16)) for i in range(40, end + 1, 5)], kind)
        x, y = at(label[end], share[end])
        d.dot(x, y, "good" if len(crossed) else "bad")
        words = f"certified at label {end + 1}" if len(crossed) else "never certified"
        d.text(x + 8, y + (18 if len(crossed) else -8), words, "good" if len(crossed) else "bad")
    d.line([(left, top), (left, bottom), (right, bottom)])
    d.line([at(0, 0.1), at(plan.horizon, 0.1)], "il dash")
    d.text(right + 8, at(0, 0.1)[1] + 5, "limit")
    d.text(right + 8, at(0, critical[-1] / plan.horizon)[1] + 10, "boundary", "blue")
    d.text(left - 8, top + 6, "share", "soft", "end")
    d.text(left - 8, top + 22, "of losses", "soft", "end")
    for t in (0, 250, 500, 750, 1000):
        d.text(at(t, 0)[0], bottom + 20, f"{t:,}", "soft", "middle")
    d.text(left, 304, "labels, in the order in which they come; true risks .05, .07 and .1", "soft")
    return d


def improvement() -> Drawing:
    d = Drawing(560, 330, "Hypervolume improvement below the reference point")
    left, bottom = 60, 280
    front = np.array([(0.2, 0.72), (0.42, 0.45), (0.75, 0.22)])
    new, reference = np.array([0.55, 0.27]), np.array([0.9, 0.85])

    def at(point: Sequence[float]) -> tuple[float, float]:
        return left + 460 * point[0], bottom - 250 * point[1]

    d.area([at(p) for p in _staircase(front, reference)], "ua")
    d.area([at(p) for p in (new, (new[0], 0.45), (0.75, 0.45), (0.75, new[1]))], "good")
    d.line([(left, 20), (left, bottom), (left + 480, bottom)])
    for point in front:
        d.dot(*at(point), "blue", 6)
    d.dot(*at(new), "open", 6)
    d.dot(*at(reference), "bad", 6)
    rx, ry = at(reference)
    d.text(rx - 12, ry - 10, "reference point", "bad", "end")
    nx, ny = at(new)
    d.text(nx - 10, ny + 20, "proposal", "", "end")
    d.text(*at((0.24, 0.78)), "covered by the front", "blue")
    d.text(*at((0.77, 0.34)), "gained", "good")
    d.text(left + 240, 312, "risk", "soft", "middle")
    d.parts.append(
        '<text transform="translate(34 150) rotate(-90)" class="soft" '
        'text-anchor="middle">free objective</text>'
    )
    return d


def _staircase(front: np.ndarray, reference: np.ndarray) -> list[tuple[float, float]]:
    """The corners of what a front of two objectives dominates below a reference point."""
    points = [(float(front[0, 0]), float(reference[1]))]
    for i, (risk, free) in enumerate(front):
        following = front[i + 1, 0] if i + 1 < len(front) else reference[0]
        points += [(float(risk), float(free)), (float(following), float(free))]
    return [*points, (float(reference[0]), float(reference[1]))]


def families() -> Drawing:
    """The largest mean of m 0/1 losses that passes, for limit 0.05 and delta 0.1."""
    d = Drawing(
        860, 360, "Largest calibration mean that passes at limit 0.05, by number of examples"
    )
    left, right, top, bottom = 70, 580, 30, 290
    sizes = np.unique(np.geomspace(45, 50_000, 120).astype(int))

    def x(m: float) -> float:
        return left + np.log(m / 40) / np.log(50_000 / 40) * (right - left)

    def y(mean: float) -> float:
        return bottom - mean / 0.055 * (bottom - top)

    d.line([(left, top), (left, bottom), (right, bottom)])
    for m in (100, 1000, 10_000):
        d.text(x(m), bottom + 20, f"{m:,}", "soft", "middle")
    for mean in (0, 0.01, 0.02, 0.03, 0.04, 0.05):
        d.text(left - 8, y(mean) + 5, f"{mean:.2f}", "soft", "end")
    d.line([(left, y(0.05)), (right, y(0.05))], "il dash")
    d.text(right + 10, y(0.05) - 2, "limit")
    names = [
        ("binomial", "exact binomial", "gl", "good", 14),
        ("hoeffding_bentkus", "Hoeffding-Bentkus", "ul", "blue", 32),
        ("hoeffding", "Hoeffding", "bl", "bad", 50),
    ]
    for family, words, stroke, fill, offset in names:
        found = [(m, largest_passing_mean(family, 0.05, int(m), 0.1)) for m in sizes]
        d.line([(x(m), y(mean)) for m, mean in found if mean is not None], stroke)
        at = largest_passing_mean(family, 0.05, 5000, 0.1)
        d.text(right + 10, y(0.05) + offset, f"{words}: {at:.4f} at 5,000", fill)
    d.text((left + right) / 2, bottom + 46, "calibration examples", "soft", "middle")
    return d


def architecture() -> Drawing:
    """The rooms of the import contract in pyproject.toml, with their modules."""
    left, whole, gap, line = 60, 790, 10, 15
    halves = [half for layer in layers() for half in _halves(layer)]
    rows = [_widths(row, whole, gap) for row, _ in halves]
    below = [2 if goes_on else gap for _, goes_on in halves]
    heights = [36 + line * max(len(words) for _, _, words in row) for row in rows]
    height = 40 + sum(heights) + sum(below) + 30
    d = Drawing(860, height, "Rooms in layers: a room imports only from rooms below it")
    d.text(left, 20, "what people touch", "soft")
    top = 34.0
    for row, tall, space in zip(rows, heights, below, strict=True):
        x = float(left)
        for room, width, words in row:
            d.rect(x, top, width, tall, "ua" if room.knows_optuna else "ga", 6)
            d.text(x + 10, top + 21, room.name, "b")
            for i, text in enumerate(words):
                d.text(x + 10, top + 40 + line * i, text, "soft small")
            x += width + gap
        top += tall + space
    d.arrow(30, 40, 30, top - gap)
    d.parts.append(
        f'<text transform="translate(18 {top / 2:.1f}) rotate(-90)" class="soft" '
        f'text-anchor="middle">imports go down only</text>'
    )
    d.rect(left, top + 6, 14, 14, "ga", 3)
    d.text(left + 20, top + 18, "knows no Optuna", "soft")
    d.rect(left + 180, top + 6, 14, 14, "ua", 3)
    d.text(left + 200, top + 18, "may know Optuna", "soft")
    return d


def _halves(layer: Sequence[Room]) -> list[tuple[Sequence[Room], bool]]:
    """Break a layer of many rooms into two rows that touch; tell of each whether it goes on."""
    if len(layer) <= 4:
        return [(layer, False)]
    middle = (len(layer) + 1) // 2
    return [(layer[:middle], True), (layer[middle:], False)]


def _widths(row: Sequence[Room], whole: float, gap: float) -> list[tuple[Room, float, list[str]]]:
    """Share the width of a layer among its rooms, more for those of many modules, and break the
    names of the modules into lines."""
    names = [_grouped(room) for room in row]
    least = 100.0
    spare = whole - gap * (len(row) - 1) - least * len(row)
    lengths = [max(len(text), 1) ** 0.7 for text in names]
    found = []
    for room, text, length in zip(row, names, lengths, strict=True):
        width = least + spare * length / sum(lengths)
        letters = int((width - 20) / 6.6)  # a letter of the small font is about that wide
        found.append((room, width, textwrap.wrap(text, letters)))
    return found


def _grouped(room: Room) -> str:
    """Name the modules of a room; those of a sub-package stand in brackets behind it."""
    names = [name for name, _ in room.modules]
    shown = []
    for name in names:
        if "." in name:
            continue
        inside = [inner.removeprefix(f"{name}.") for inner in names if inner.startswith(f"{name}.")]
        leaves = ", ".join(inner.replace(".", "/") for inner in inside)
        shown.append(f"{name} ({leaves})" if leaves else name)
    return ", ".join(shown)


PICTURES: dict[str, Callable[[], Drawing]] = {
    "flow": flow,
    "splits": splits,
    "draws": draws,
    "region": region,
    "sequence": sequence,
    "labels": labels,
    "improvement": improvement,
    "families": families,
    "architecture": architecture,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (IMAGES / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
        print(f"docs/images/{name}.svg")
