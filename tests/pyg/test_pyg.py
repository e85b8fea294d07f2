"""In a PyTorch Geometric project: convolutions and models on plain tensors, transforms, loaders."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv
from torch_geometric.transforms import AddRandomWalkPE, Compose

import anyorder
from anyorder.layers import INTO_NODES
from anyorder.pyg import AddLaplacian, AddRandomWalks, DropInConv, GraphTransformer, PairConv, PairSet, PreparePairs
from anyorder.pyg.pairs import _KNOWN

KERNELS = ["relu", "softmax", "elu"]


def graph(nodes: int = 6, edges: int = 8, *, seed: int = 0, channels: int = 8) -> Data:
    """A random graph without self loops or repeated edges, whose last node has no edge."""
    generator = torch.Generator().manual_seed(seed)
    every = torch.cartesian_prod(torch.arange(nodes - 1), torch.arange(nodes - 1))
    every = every[every[:, 0] != every[:, 1]]
    chosen = every[torch.randperm(len(every), generator=generator)[:edges]]
    x = torch.randn(nodes, channels, generator=generator, dtype=torch.float64)
    edge_attr = torch.randn(len(chosen), channels, generator=generator, dtype=torch.float64)
    return Data(x=x, edge_index=chosen.T.contiguous(), edge_attr=edge_attr, num_nodes=nodes)


def renamed(data: Data) -> tuple[Data, torch.Tensor, torch.Tensor]:
    """The same graph with other numbers for its nodes and its edges in another order."""
    nodes, edges = torch.randperm(data.num_nodes), torch.randperm(data.num_edges)
    x = torch.empty_like(data.x)
    x[nodes] = data.x
    return Data(x=x, edge_index=nodes[data.edge_index][:, edges], edge_attr=data.edge_attr[edges]), nodes, edges


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lean", [{}, INTO_NODES])
def test_conv_is_equivariant_and_keeps_shapes(kernel, lean):
    conv, data = PairConv(8, heads=2, kernel=kernel, **lean).double(), graph()
    other, nodes, edges = renamed(data)
    x, edge_attr = conv(data.x, data.edge_index, data.edge_attr)
    y, other_attr = conv(other.x, other.edge_index, other.edge_attr)
    assert x.shape == data.x.shape and edge_attr.shape == data.edge_attr.shape
    torch.testing.assert_close(y[nodes], x)
    torch.testing.assert_close(other_attr, edge_attr[edges])


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_graph_does_not_see_its_batch_neighbours(kernel):
    conv, graphs = PairConv(8, heads=2, kernel=kernel).double(), [graph(seed=n, nodes=4 + n) for n in range(3)]
    batch = Batch.from_data_list(graphs)
    x, edge_attr = conv(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
    alone = [conv(one.x, one.edge_index, one.edge_attr) for one in graphs]
    torch.testing.assert_close(x, torch.cat([part for part, _ in alone]))
    torch.testing.assert_close(edge_attr, torch.cat([part for _, part in alone]))


def test_takes_the_place_of_gps_conv_in_one_line():
    def network(conv) -> nn.Module:
        return conv.double()

    data = Batch.from_data_list([graph(seed=0), graph(seed=1)])
    mlp = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    for conv in (network(GPSConv(8, GINEConv(mlp), heads=2)), network(DropInConv(8, heads=2))):
        x = conv(data.x, data.edge_index, data.batch, edge_attr=data.edge_attr)
        assert x.shape == data.x.shape
        x.sum().backward()
        assert all(p.grad is not None for p in conv.parameters())


def test_self_loops_and_repeated_edges_are_added():
    conv, data = PairConv(8, heads=2).double(), graph()
    first = data.edge_index[:, :1]
    loop = torch.tensor([[2], [2]])
    index = torch.cat([data.edge_index, first, loop], 1)
    extra = torch.randn(2, 8, dtype=torch.float64)
    x, edge_attr = conv(data.x, index, torch.cat([data.edge_attr, extra]))
    summed, nodes = data.edge_attr.clone(), data.x.clone()
    summed[0] += extra[0]
    nodes[2] += extra[1]
    y, other_attr = conv(nodes, data.edge_index, summed)
    torch.testing.assert_close(x, y)
    torch.testing.assert_close(edge_attr, torch.cat([other_attr, other_attr[:1], y[2:3]]))


def test_index_sets_are_kept_as_long_as_the_edges():
    data = graph()
    known = PairSet.of(data.edge_index, num_nodes=6)
    assert PairSet.of(data.edge_index, num_nodes=6) is known
    assert PairSet.of(data.edge_index, num_nodes=7) is not known
    known = PairSet.of(data.edge_index, num_nodes=6)
    data.edge_index[0, 0] = data.edge_index[0, 0].clone()  # written to: another version
    assert PairSet.of(data.edge_index, num_nodes=6) is not known
    gc.collect()
    before = len(_KNOWN)
    del data
    gc.collect()
    assert len(_KNOWN) == before - 1


@pytest.mark.parametrize("level", ["graph", "node", "edge"])
@pytest.mark.parametrize("kernel", ["relu", "softmax"])
def test_model_answers_for_its_level(level, kernel):
    model = GraphTransformer(8, 16, 3, edge_dim=8, num_layers=2, heads=2, level=level, kernel=kernel).double().eval()
    graphs = [graph(seed=n, nodes=4 + n) for n in range(3)]
    batch = Batch.from_data_list(graphs)
    made = model(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
    assert made.shape == ({"graph": 3, "node": batch.num_nodes, "edge": batch.num_edges}[level], 3)
    torch.testing.assert_close(made, torch.cat([model(one.x, one.edge_index, one.edge_attr) for one in graphs]))
    other, nodes, edges = renamed(graphs[0])
    again = model(other.x, other.edge_index, other.edge_attr)
    first = model(graphs[0].x, graphs[0].edge_index, graphs[0].edge_attr)
    again = again[nodes] if level == "node" else again
    torch.testing.assert_close(again, first[edges] if level == "edge" else first)


def test_model_embeds_categories_and_takes_positions():
    model = GraphTransformer((5, 3), 8, 2, edge_dim=(4,), num_layers=1, heads=2, position_channels=4)
    data = AddRandomWalks(4)(graph())
    x, kinds = torch.randint(3, (6, 2)), torch.randint(4, (8, 1))
    assert model(x, data.edge_index, kinds, positions=data.random_walk_pe).shape == (1, 2)
    with pytest.raises(ValueError, match=r"takes positions with 4 channels .* got none"):
        model(x, data.edge_index, kinds)
    with pytest.raises(ValueError, match=r"edge_attr of 1 columns of categories \(4,\), got none"):
        model(x, data.edge_index, positions=data.random_walk_pe)
    with pytest.raises(TypeError, match=r"x must hold categories of int64, got torch.float64"):
        model(data.x[:, :2], data.edge_index, kinds, positions=data.random_walk_pe)


def test_every_parameter_has_a_gradient():
    for options in ({"edge_dim": 8}, {}):
        model = GraphTransformer(8, 8, 1, num_layers=1, heads=2, **options).double()
        data = graph()
        model(data.x, data.edge_index, *([data.edge_attr] if options else [])).sum().backward()
        assert [name for name, p in model.named_parameters() if p.grad is None] == []


def test_graphs_without_edges_and_empty_graphs():
    model = GraphTransformer(8, 8, 1, num_layers=1, heads=2).double()
    none = torch.zeros(2, 0, dtype=torch.int64)
    assert model(torch.randn(3, 8, dtype=torch.float64), none).isfinite().all()
    batch = torch.tensor([0, 0, 1])
    assert model(torch.randn(3, 8, dtype=torch.float64), none, None, batch, batch_size=3).shape == (3, 1)


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_make_pairs_and_plans(workers):
    model = GraphTransformer(8, 8, 1, edge_dim=8, num_layers=1, heads=2).double().eval()
    graphs = [graph(seed=n) for n in range(6)]
    loader = PreparePairs(model).attach(DataLoader(graphs, batch_size=3, num_workers=workers))
    for batch in loader:
        batch = batch.to("cpu")
        before = {*batch.pairs.index._cache}
        made = model(batch.x, batch.edge_index, batch.edge_attr, batch.batch, pairs=batch.pairs)
        torch.testing.assert_close(made, model(batch.x, batch.edge_index, batch.edge_attr, batch.batch))
        assert {*batch.pairs.index._cache} == before  # nothing was left to do


def test_prepare_finds_convolutions_inside():
    with pytest.raises(ValueError, match="Linear holds no GraphTransformer"):
        PreparePairs(nn.Linear(1, 1))
    conv = nn.Sequential(nn.Linear(8, 8), PairConv(8, heads=2))
    data = PreparePairs(conv)(graph())
    assert data.pairs.index.num_entries == 14
    x, _ = conv[1].double()(data.x, data.edge_index, data.edge_attr, pairs=data.pairs)
    assert x.shape == data.x.shape


def test_positions_as_transforms():
    data = graph(nodes=8, edges=20)
    both = torch.cat([data.edge_index, data.edge_index.flip(0)], 1).unique(dim=1)
    plain = Data(edge_index=both, num_nodes=8)
    ours = Compose([AddRandomWalks(5), AddLaplacian(3)])(plain)
    theirs = AddRandomWalkPE(6)(plain).random_walk_pe[:, 1:]  # theirs begins at one step
    torch.testing.assert_close(ours.random_walk_pe, theirs)
    assert ours.laplacian_pe.shape == (8, 3)
    assert AddRandomWalks(5, name=None)(data).x.shape == (8, 13)


def test_bad_input():
    data = graph()
    with pytest.raises(ValueError, match=r"x must have shape \(num_nodes, 4\), got \(6, 8\)"):
        PairConv(4, heads=2)(data.x, data.edge_index)
    with pytest.raises(
        ValueError, match=r"edge_index must be int64 of shape \(2, num_edges\), got torch.int64 of shape \(8, 2\)"
    ):
        PairConv(8, heads=2)(data.x, data.edge_index.T)
    with pytest.raises(ValueError, match="expected 6 nodes and 8 edges, got 6 and 7"):
        PairConv(8, heads=2).double()(data.x, data.edge_index, data.edge_attr[1:])
    with pytest.raises(ValueError, match="multiple of heads, got 8 and 3"):
        PairConv(8, heads=3)
    with pytest.raises(ValueError, match="level must be 'graph', 'node' or 'edge', got 'nodes'"):
        GraphTransformer(8, 8, 1, level="nodes")


def test_saved_and_loaded(tmp_path):
    model = GraphTransformer((5, 3), 8, 2, edge_dim=4, num_layers=1, heads=2, **INTO_NODES)
    model.save(tmp_path)
    assert repr(anyorder.load(tmp_path)) == repr(model)


@pytest.mark.slow
def test_a_model_is_exported_as_it_is():
    torch.manual_seed(0)
    model = GraphTransformer(7, 8, 1, edge_dim=3, num_layers=1, heads=2).eval()
    edges = torch.tensor([[0, 1, 2], [1, 0, 3]])
    example = (torch.randn(4, 7), edges, torch.randn(3, 3), torch.tensor([0, 0, 1, 1]))
    any_size = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        model, example, dynamic_shapes=({0: any_size}, {1: any_size}, {0: any_size}, {0: any_size})
    )
    edges = torch.tensor([[0, 1, 2, 4, 5, 5, 0], [1, 0, 0, 5, 4, 5, 1]])  # an edge twice, and a self loop
    given = (torch.randn(6, 7), edges, torch.randn(7, 3), torch.tensor([0, 0, 0, 1, 1, 1]))
    torch.testing.assert_close(program.module()(*given), model(*given), rtol=1e-5, atol=1e-5)
