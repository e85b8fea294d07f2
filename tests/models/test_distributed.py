"""Other people's ways to distribute a model give what one process gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from anyorder import Encoder, RandomFeatures, collate
from anyorder.testing import random_features
from forked import run_together

SCRIPT = Path(__file__).with_name("distributed_steps.py")


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without torch.distributed")
@pytest.mark.parametrize("world", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_several_processes_equal_one(world, tmp_path):
    ended = run_together(SCRIPT.read_text(), [(rank, world, tmp_path / "store") for rank in range(world)], timeout=300)
    assert [process.returncode for process in ended] == [0] * world, "\n".join(process.stderr for process in ended)
    ways = [line for line in ended[0].stdout.split("\n") if line.endswith(": equal")]
    assert ways == [f"{way}: equal" for way in ("DDP", "DDP with unused", "FSDP2", "DDP in parts", "FSDP2 in parts")]


@pytest.mark.parametrize("precision", ["64-true", "bf16-true", "bf16-mixed"])
@pytest.mark.filterwarnings("ignore")  # Lightning's own
def test_lightning_trains_in_other_precisions(precision, tmp_path):
    pl = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            sizes = {"channels_in": 3, "channels": 8, "channels_out": 1, "heads": 2, "head_channels": 4}
            self.model = Encoder(order_in=2, orders=(2, 0), kernel=RandomFeatures(), **sizes)
            self.losses = []

        def training_step(self, x):
            loss = (self.model(x).rows.float() - 1).square().mean()
            self.losses.append(float(loss.detach()))
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    torch.manual_seed(0)
    graphs = [random_features(2, num_graphs=1, num_nodes=4 + n, channels=3).to(torch.float32) for n in range(4)]
    loader = torch.utils.data.DataLoader(graphs, batch_size=4, collate_fn=collate)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    module = Module()
    trainer = pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=20, precision=precision, default_root_dir=tmp_path, **quiet
    )
    trainer.fit(module, loader)
    assert module.losses[-1] < module.losses[0]
    expected = {"64-true": torch.float64, "bf16-true": torch.bfloat16, "bf16-mixed": torch.float32}[precision]
    assert {weight.dtype for weight in module.parameters()} == {expected}
