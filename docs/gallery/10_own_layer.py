"""An equivariance test of one's own layer: one that is equivariant, and one that looks at the numbers of nodes."""
import matplotlib.pyplot as plt
import torch
from torch import nn
from anyorder import EquivariantLinear, Features, SparseIndexSet
from anyorder.testing import assert_equivariant, random_features

torch.manual_seed(0)

class Product(nn.Module):
    """Two linear maps, multiplied: not linear any more, still equivariant."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        sizes = {"order_in": 2, "order_out": 2, "channels_in": channels, "channels_out": channels}
        self.left, self.right = EquivariantLinear(**sizes), EquivariantLinear(**sizes)

    def forward(self, x: Features) -> Features:
        return x.with_rows(self.left(x).rows * self.right(x).rows)

def numbered(x: Features) -> Features:
    return x.with_rows(x.rows * x.index.tuples[:, :1])

x = random_features(order=2, channels=3, num_graphs=1)
layers = {"Product": Product(3).double(), "numbered": numbered}
for name, layer in layers.items():
    try:
        assert_equivariant(layer, x)
        print(f"{name}: equivariant")
    except AssertionError as error:
        print(f"{name}: {str(error).splitlines()[0]}")
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
renamed = Features.of_rows(SparseIndexSet(torch.randperm(x.num_nodes)[x.index.tuples], num_nodes=x.num_nodes), x.rows)
for (name, layer), axis in zip(layers.items(), axes, strict=True):
    before, after = layer(x).rows.detach().flatten(), layer(renamed).rows.detach().flatten()
    axis.scatter(before, after, s=12, color="#0072b2")
    axis.set(title=name, xlabel="answer", ylabel="answer with nodes renamed")
figure.savefig("picture.svg")
