"""The pruning experiments from end to end on a tiny encoder and made-up news."""

import csv
import gzip
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

torch = import_module("torch")
import_module("tokenizers")
import_module("safetensors")

from safetensors.torch import save_file  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers, processors  # noqa: E402

from experiments.cascade import train as cascade  # noqa: E402
from experiments.pruning import merge, train  # noqa: E402
from experiments.pruning.model import Encoder, Network, Readers, run_pruned  # noqa: E402
from riskpilot.bench.tasks.pruning import load_early_exit, load_pruning  # noqa: E402
from riskpilot.bench.tasks.table import save  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"word{index}" for index in range(30))]
CONFIG = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "hidden_dropout_prob": 0.1,
    "vocab_size": len(WORDS),
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)

    def news(count: int) -> list[list[str]]:
        sizes = rng.integers(1, 9, count)
        texts = [" ".join(f"word{word}" for word in rng.integers(0, 30, size)) for size in sizes]
        return [[str(1 + index % 4), text, "word1"] for index, text in enumerate(texts)]

    (folder / "ag_news").mkdir()
    header = ["class_index", "title", "description", "source_repo"]
    for name, rows in (
        ("train_subset", [header, *([*row, "somewhere"] for row in news(40))]),
        ("test", news(24)),
    ):
        with gzip.open(folder / "ag_news" / f"{name}.csv.gz", "wt", newline="") as file:
            csv.writer(file).writerows(rows)

    weights = folder / "weights" / "bge_small"
    weights.mkdir(parents=True)
    (weights / "config.json").write_text(json.dumps(CONFIG))
    torch.manual_seed(0)
    state = {name: value.half() for name, value in Encoder(CONFIG).state_dict().items()}
    save_file(state, weights / "encoder.safetensors")
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(weights / "tokenizer.json"))
    return folder


def options(data: Path, out: Path, *more: str) -> list[str]:
    sizes = {
        "longest": 12,
        "importance-rows": 8,
        "validation-rows": 10,
        "epochs": 1,
        "batch": 32,
        "reader-epochs": 1,
        "reader-batch": 32,
        "token-steps": 3,
        "head-steps": 4,
        "exit-steps": 5,
        "precision": "bfloat16",
    }
    small = [f"--{name}={value}" for name, value in sizes.items()]
    return ["--data", str(data), "--out", str(out), "--device", "cpu", *small, *more]


def test_one_step_of_training_gives_both_tables(data: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    train.main(options(data, parts, "--checkpoints", str(tmp_path), "--heads", ":1"))
    train.main(options(data, parts, "--checkpoints", str(tmp_path), "--heads", "1:"))
    merge.main(["--parts", str(parts), "--tables", str(tmp_path)])

    pruning = load_pruning(tmp_path / "pruning" / "table.npz")
    early = load_early_exit(tmp_path / "early_exit" / "table.npz")
    for task in (pruning, early):
        assert task.size == {"validation": 10, "held_out": 14}
        assert task.safe is not None
        assert not task.losses("held_out", task.safe)["drop"].any()
        assert task.free("held_out", task.safe, None) == 1.0
    assert pruning.grid is not None
    assert len(pruning.grid) == 3 * 4 * 5
    # exits alone are the same in both tables where one threshold serves all layers, but for the
    # rounding of a confidence, which moves one text of 14 by at most two of three layers
    assert pruning.safe is not None
    for value in np.linspace(-1.125, early.safe["exit_1"], 5):  # type: ignore[index]
        one = {**pruning.safe, "exit": value}
        other = {"exit_1": value, "exit_2": value}
        assert pruning.free("held_out", one, None) == pytest.approx(
            early.free("held_out", other, None), abs=0.06
        )


def test_two_models_are_asked_what_neither_was_trained_on(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.npz"
    common = ["--data", str(data), "--out", str(out), "--device", "cpu", "--epochs", "1"]
    for part in ("large", "small"):
        cascade.main([*common, "--only", part])

    texts = cascade.split(data)
    assert len(texts.train) == 20
    assert len(texts.asked) == 20 + 24
    with np.load(out) as scores:
        assert scores["n"] == 44
        small = cascade.small_chances(texts)
        labels = np.array([label for label, _ in texts.asked])
        right = np.unpackbits(scores["small_right"], count=44).astype(bool)
        assert (right == (small.argmax(axis=1) == labels)).all()
        assert ((scores["judged_wrong"] >= 0) & (scores["judged_wrong"] <= 1)).all()


def test_losses_and_costs_of_pruning_are_those_of_a_loop_over_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    head_steps, token_steps, exit_steps, layers, texts = 3, 4, 6, 5, 30
    settings = {
        "validation_rows": 12,
        "longest": 40,
        "hidden": 24,
        "intermediate": 96,
        "heads": 6,
        "reader_hidden": 8,
        "classes": 4,
    }
    lengths = rng.integers(20, 40, texts)
    shape = (head_steps, token_steps, layers - 1, texts)
    removed = rng.integers(0, 5, shape, dtype=np.uint8)
    removed[:, 0] = 0
    rise = rng.integers(0, 3, shape, dtype=np.uint8)
    correct = rng.random((head_steps, token_steps, layers, texts)) < 0.7
    heads = np.sort(rng.integers(0, 7, (head_steps, layers)), axis=0)[::-1]
    heads[0] = 6
    grids = {
        "token_grid": np.linspace(0.2, 0.8, token_steps),
        "head_grid": np.arange(head_steps) / head_steps,
        "exit_grid": np.linspace(-1.0, 4.0, exit_steps),
    }
    arrays = {
        "lengths": lengths.astype(np.uint8),
        "removed": removed,
        "rise": rise,
        "correct": np.packbits(correct, axis=-1),
        "heads": heads.astype(np.uint8),
        **grids,
    }
    save(tmp_path / "table.npz", arrays, settings)
    task = load_pruning(tmp_path / "table.npz")

    def layer_cost(tokens: int, count: int) -> float:
        size = 24 // 6
        products = 3 * 2 * tokens * 24 * size * count + 2 * tokens * size * count * 24
        attention = 2 * 2 * tokens * tokens * size * count
        return products + attention + 2 * 2 * tokens * 24 * 96

    def reader_cost(layer: int, outputs: int) -> float:
        return 2 * 8 * layer * 24 + 2 * 8 * outputs

    for h in range(head_steps):
        for t in range(token_steps):
            for e in range(exit_steps):
                config = {
                    "tokens": grids["token_grid"][t] + 0.01,
                    "heads": grids["head_grid"][h] - 0.01,
                    "exit": grids["exit_grid"][e] + 0.1,
                }
                drops, costs = [], []
                for text in range(12, texts):
                    tokens, sure, cost = int(lengths[text]), 0, 0.0
                    for layer in range(layers):
                        cost += layer_cost(tokens, int(heads[h, layer]))
                        if layer == layers - 1:
                            break
                        if e < exit_steps - 1:
                            cost += reader_cost(layer + 1, 4)
                        sure += int(rise[h, t, layer, text])
                        if sure > e:
                            break
                        if t > 0:
                            cost += (tokens - 1) * reader_cost(layer + 1, 1)
                        tokens -= int(removed[h, t, layer, text])
                    drops.append(int(correct[0, 0, -1, text]) - int(correct[h, t, layer, text]))
                    costs.append(cost / (layers * layer_cost(int(lengths[text]), 6)))
                found = task.losses("held_out", config)["drop"]
                np.testing.assert_array_equal(found, drops)
                assert task.free("held_out", config, None) == pytest.approx(np.mean(costs))
                subset = np.array([3, 0, 7])
                expected = np.mean(np.array(costs)[subset])
                assert task.free("held_out", config, subset) == pytest.approx(expected)


def test_losses_and_costs_of_early_exit_are_those_of_a_loop_over_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    layers, texts = 4, 25
    settings = {
        "validation_rows": 10,
        "longest": 40,
        "hidden": 24,
        "intermediate": 96,
        "heads": 6,
        "reader_hidden": 8,
        "classes": 4,
        "exit_low": -1.125,
        "exit_high": 5.0,
    }
    lengths = rng.integers(5, 40, texts)
    confidence = rng.uniform(-1, 5, (layers - 1, texts)).astype(np.float16)
    correct = rng.random((layers, texts)) < 0.7
    arrays = {
        "lengths": lengths.astype(np.uint8),
        "confidence": confidence,
        "correct": np.packbits(correct, axis=-1),
    }
    save(tmp_path / "table.npz", arrays, settings)
    task = load_early_exit(tmp_path / "table.npz")
    for trial in range(20):
        thresholds = rng.uniform(0, 5, layers - 1)
        thresholds[rng.random(layers - 1) < 0.2] = 5.0
        config = {f"exit_{layer + 1}": value for layer, value in enumerate(thresholds)}
        split = ("validation", "held_out")[trial % 2]
        drops, costs = [], []
        for text in range(10) if split == "validation" else range(10, texts):
            n, cost = int(lengths[text]), 0
            each = 8 * n * 24 * 24 + 4 * n * n * 24 + 4 * n * 24 * 96
            for layer in range(layers):
                cost += each
                if layer == layers - 1:
                    break
                if thresholds[layer] < 5.0:
                    cost += 2 * 8 * ((layer + 1) * 24 + 4)
                if confidence[layer, text] > thresholds[layer]:
                    break
            drops.append(int(correct[-1, text]) - int(correct[layer, text]))
            costs.append(cost / (layers * each))
        np.testing.assert_array_equal(task.losses(split, config)["drop"], drops)
        assert task.free(split, config, None) == pytest.approx(np.mean(costs))


def test_a_token_that_is_gone_has_no_effect() -> None:
    """Masking a removed token is the same as running the later layers without it."""
    network = Network(CONFIG, 4).eval()
    ids = torch.randint(4, len(WORDS), (1, 9))
    keep = torch.ones(1, 9, dtype=torch.bool)
    scores = run_pruned(network, ids, keep, gates=None, threshold=None)["scores"]
    threshold = scores[0, 0, 1:].median().item()
    found = run_pruned(network, ids, keep, gates=None, threshold=threshold)

    states = network.encoder.embed(ids)
    seen: list[torch.Tensor] = []
    counts = []
    for index, layer in enumerate(network.encoder.layers):
        counts.append(states.shape[1])
        states = layer(states, torch.ones(1, states.shape[1], dtype=torch.bool), None)
        if index == 2:
            break
        seen.append(states)
        padded = torch.stack([*seen, *[torch.zeros_like(states)] * (1 - index)], 2)
        score = network.importance(padded[0])[:, index, 0].sigmoid()
        stay = ~(score < threshold)
        stay[0] = True
        states = states[:, stay]
        seen = [before[:, stay] for before in seen]
    assert counts == found["tokens"][:, 0].tolist()
    assert counts[1] < counts[0]
    expected = network.classifier(states[:, 0]).argmax(-1)
    assert found["prediction"][-1].tolist() == expected.tolist()


def test_a_head_behind_a_closed_gate_has_no_effect() -> None:
    encoder = Encoder(CONFIG).eval()
    ids = torch.randint(4, len(WORDS), (2, 6))
    keep = torch.ones(2, 6, dtype=torch.bool)
    gates = torch.ones(1, 3, 4)
    gates[0, 1, 2] = 0
    before = encoder(ids, keep, gates)[-1]
    with torch.no_grad():
        encoder.layers[1].attention["self"]["value"].weight[8:12] += 1.0
    torch.testing.assert_close(encoder(ids, keep, gates)[-1], before)


def test_readers_give_the_same_layer_by_layer_as_at_once() -> None:
    readers = Readers(3, 5, 2)
    states = torch.randn(7, 3, 5)
    hidden = None
    for layer in range(3):
        hidden = readers.add(hidden, states[:, layer], layer)
        torch.testing.assert_close(readers.read(hidden, layer), readers(states)[:, layer])


def test_encoder_is_hugging_faces_bert_model() -> None:
    transformers = import_module("transformers")
    theirs = transformers.BertModel(
        transformers.BertConfig(**CONFIG, hidden_act="gelu"), add_pooling_layer=False
    ).eval()
    ours = Encoder(CONFIG).eval()
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(4, len(WORDS), (2, 10))
    keep = torch.arange(10) < torch.tensor([[10], [6]])
    with torch.no_grad():
        expected = theirs(ids, attention_mask=keep.long(), output_hidden_states=True)
        for found, states in zip(ours(ids, keep), expected.hidden_states[1:], strict=True):
            torch.testing.assert_close(found[keep], states[keep], atol=1e-4, rtol=1e-4)
