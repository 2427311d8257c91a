"""The VAE experiment from end to end on a few small images."""

import gzip
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

torch = import_module("torch")

from torch.nn import functional  # noqa: E402

from experiments.vae import merge, train  # noqa: E402
from experiments.vae.model import Convolution, TransposedConvolution  # noqa: E402
from riskpilot.bench.tasks.vae import load_vae  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "mnist").mkdir()
    rng = np.random.default_rng(0)
    for name, count in (("train-images", 10_010), ("t10k-images", 12)):
        header = np.array([0x803, count, 28, 28], dtype=">i4").tobytes()
        pixels = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8).tobytes()
        path = folder / "mnist" / f"{name}-idx3-ubyte.gz"
        path.write_bytes(gzip.compress(header + pixels, compresslevel=0))
    return folder


def options(data: Path, out: Path, *more: str) -> list[str]:
    sizes = {"rows": 8, "batch": 8, "epochs": 1, "width": 8, "count": 3, "beta-low": 0.01}
    small = [f"--{name}={value}" for name, value in sizes.items()]
    return ["--data", str(data), "--out", str(out), "--device", "cpu", *small, *more]


def test_one_step_of_training_gives_a_table_of_its_losses(data: Path, tmp_path: Path) -> None:
    train.main(options(data, tmp_path))
    part = tmp_path / "part_000_003.npz"
    table = tmp_path / "table.npz"
    merge.main(["--parts", str(part), "--out", str(table)])

    task = load_vae(table)
    raw = np.load(part)
    assert task.size == {"validation": 8, "held_out": 8}
    assert task.grid is not None
    for index, config in enumerate(task.grid):
        for split in ("validation", "held_out"):
            found = task.losses(split, config)["reconstruction"]
            np.testing.assert_allclose(found, raw[f"{split}_mse"][index], atol=1e-4)
            rows = np.array([1, 5])
            expected = raw[f"{split}_kld"][index][rows].mean()
            assert task.free(split, config, rows) == pytest.approx(expected, rel=1e-4)


def test_parts_of_the_grid_join_to_the_same_losses(data: Path, tmp_path: Path) -> None:
    train.main(options(data, tmp_path / "whole"))
    train.main(options(data, tmp_path / "parts", "--betas", ":1"))
    train.main(options(data, tmp_path / "parts", "--betas", "1:"))
    for folder in ("whole", "parts"):
        parts = sorted(str(path) for path in (tmp_path / folder).glob("*.npz"))
        merge.main(["--parts", *parts, "--out", str(tmp_path / f"{folder}.npz")])
    whole, joined = load_vae(tmp_path / "whole.npz"), load_vae(tmp_path / "parts.npz")
    for config in whole.grid or []:
        np.testing.assert_allclose(
            whole.losses("held_out", config)["reconstruction"],
            joined.losses("held_out", config)["reconstruction"],
            rtol=1e-3,
        )


def test_a_beta_between_two_of_the_grid_has_the_losses_of_the_nearest_on_the_log_scale(
    data: Path, tmp_path: Path
) -> None:
    train.main(options(data, tmp_path))  # betas 0.01, 1, 100
    merge.main(["--parts", str(tmp_path / "part_000_003.npz"), "--out", str(tmp_path / "t.npz")])
    task = load_vae(tmp_path / "t.npz")
    for beta, neighbour in ((0.09, 0.01), (0.11, 1.0), (9.0, 1.0), (11.0, 100.0)):
        near = task.free("validation", {"beta": neighbour}, None)
        assert task.free("validation", {"beta": beta}, None) == near


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(4, 2, 1), (3, 2, 1), (3, 1, 1), (1, 1, 0)]
)
def test_batched_convolution_is_torchs_for_every_model(
    kernel: int, stride: int, padding: int
) -> None:
    rng = torch.Generator().manual_seed(0)
    layer = Convolution(2, 3, 5, rng, kernel=kernel, stride=stride, padding=padding)
    images = torch.randn(2, 4, 7, 7, 3, generator=rng, requires_grad=True)
    weight = layer.product.weight
    found = layer(images)
    expected = torch.stack(
        [
            functional.conv2d(
                images[model].permute(0, 3, 1, 2),
                weight[model].view(kernel, kernel, 3, 5).permute(3, 2, 0, 1),
                layer.product.bias[model, 0],
                stride,
                padding,
            ).permute(0, 2, 3, 1)
            for model in range(2)
        ]
    )
    assert_same_function(found, expected, [images, weight])


@pytest.mark.parametrize(("kernel", "before", "after"), [(3, 4, 7), (4, 7, 14)])
def test_batched_transposed_convolution_is_torchs_for_every_model(
    kernel: int, before: int, after: int
) -> None:
    rng = torch.Generator().manual_seed(0)
    layer = TransposedConvolution(2, 3, 5, rng, kernel=kernel, size=after)
    images = torch.randn(2, 4, before, before, 3, generator=rng, requires_grad=True)
    found = layer(images)
    expected = torch.stack(
        [
            functional.conv_transpose2d(
                images[model].permute(0, 3, 1, 2),
                layer.weight[model].view(3, kernel, kernel, 5).permute(0, 3, 1, 2),
                layer.bias[model, 0],
                2,
                1,
            ).permute(0, 2, 3, 1)
            for model in range(2)
        ]
    )
    assert_same_function(found, expected, [images, layer.weight])


def assert_same_function(found, expected, inputs) -> None:  # type: ignore[no-untyped-def]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    one = torch.autograd.grad((found * direction).sum(), inputs)
    other = torch.autograd.grad((expected * direction).sum(), inputs)
    torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
