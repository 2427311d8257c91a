"""Runs Inspect AI on sums, with a model that needs no network, and writes its logs.

``python inspect_runs.py FOLDER``, in an environment that has Inspect AI.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.scorer import Score, accuracy, match, mean, scorer, stderr
from inspect_ai.solver import generate, system_message

# How often each model is right, of 256, and what a token costs.
MODELS = {"small": (190, 1e-6), "medium": (255, 4e-6), "large": (256, 1e-5)}


@modelapi(name="sums")
class Sums(ModelAPI):
    """Adds two numbers, and errs by a rule that looks random and is the same in every run."""

    asked = 0

    async def generate(self, input, tools, tool_choice, config: GenerateConfig):
        self.asked += 1
        question = input[-1].text
        digest = hashlib.sha256(f"{self.model_name} {question} {self.asked}".encode()).digest()
        often, price = MODELS[self.model_name]
        one, two = (int(word) for word in question.rstrip("?").split() if word.isdigit())
        output = ModelOutput.from_content(self.model_name, str(one + two + (digest[0] >= often)))
        tokens = 10 + digest[1] % 5
        output.usage = ModelUsage(
            input_tokens=10,
            output_tokens=tokens - 10,
            total_tokens=tokens,
            total_cost=tokens * price,
        )
        return output


@scorer(metrics=[mean()])
def length():
    """Counts the letters of the answer: a score that is not better when larger. One sample gets
    none."""

    async def score(state, target):
        none = state.sample_id == "sum-05"
        return Score(value=math.nan if none else len(state.output.completion))

    return score


@scorer(metrics=[accuracy(), stderr()])
def half():
    """Gives half a point where the answer is only nearly right."""

    async def score(state, target):
        off = int(state.output.completion) - int(target.text)
        return Score(value="C" if off == 0 else "P" if abs(off) == 1 else "I")

    return score


@task
def sums(style: str = "plain", n: int = 60, scorers: int = 1):
    """Ask for sums in some style."""
    samples = [
        Sample(input=f"What is {i} + {i + 3}?", target=str(2 * i + 3), id=f"sum-{i:02d}")
        for i in range(n)
    ]
    return Task(
        dataset=samples,
        solver=[system_message(f"Answer in a {style} way."), generate()],
        scorer=[match(), half(), length()][:scorers],
    )


def run(folder: Path, name: str, task: Task, model: str, log_format: str = "eval", **options):
    """Run one evaluation, give its log a name, and return what Inspect AI itself reads in it."""
    log = eval(
        task,
        model=f"sums/{model}",
        log_dir=str(folder / "running"),
        log_format=log_format,
        display="none",
        max_connections=1,
        max_samples=1,
        temperature=0.5,
        log_model_api=False,
        **options,
    )[0]
    kept = folder / f"{name}.{log_format}"
    Path(log.location.removeprefix("file://")).rename(kept)
    return kept.name, [_short(sample) for sample in read_eval_log(str(kept)).samples]


def _short(sample) -> dict:
    """Say what a sample was and how it was scored, as Inspect AI read it."""
    (usage,) = sample.model_usage.values()
    values = {name: score.value for name, score in sample.scores.items()}
    return {
        "id": sample.id,
        "epoch": sample.epoch,
        "scores": {name: None if value != value else value for name, value in values.items()},
        "tokens": usage.total_tokens,
        "cost": usage.total_cost,
        "seconds": sample.working_time,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    read = dict(
        [
            *(run(folder, f"terse-{model}", sums("terse"), model) for model in MODELS),
            run(folder, "repeated", sums("polite", n=6, scorers=3), "small", epochs=3),
            run(folder, "repeated", sums("polite", n=6), "medium", "json", epochs=2),
        ]
    )
    (folder / "running").rmdir()
    (folder / "read_by_the_tool.json").write_text(json.dumps(read, indent=1) + "\n")
