"""Runs Inspect AI on sums, with a model that needs no network, and writes its logs.

``python inspect_runs.py FOLDER``, in an environment that has Inspect AI.
"""

import hashlib
import sys
from pathlib import Path

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.scorer import Score, accuracy, match, mean, scorer, stderr
from inspect_ai.solver import generate, system_message

# How often each model is right, of 256, and what a token costs.
MODELS = {"small": (190, 1e-6), "large": (252, 1e-5)}


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
    """Counts the letters of the answer: a score that is not better when larger."""

    async def score(state, target):
        return Score(value=len(state.output.completion))

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


def run(folder: str, task: Task, model: str, log_format: str = "eval", **options) -> None:
    """Run one evaluation."""
    before = set(Path(folder).glob("*"))
    log = eval(
        task,
        model=f"sums/{model}",
        log_dir=folder,
        log_format=log_format,
        display="none",
        max_connections=1,
        max_samples=1,
        temperature=0.5,
        log_model_api=False,
        **options,
    )[0]
    (written,) = set(Path(folder).glob("*")) - before
    name = f"{log.eval.task_args.get('style', 'plain')}-{model}-{len(before)}"
    written.rename(Path(folder) / f"{name}{written.suffix}")


if __name__ == "__main__":
    folder = sys.argv[1]
    run(folder, sums("terse"), "small")
    run(folder, sums("terse"), "large")
    run(folder, sums("polite", n=6, scorers=3), "small", epochs=3)
    run(folder, sums("polite", n=6), "large", "json", epochs=2)
