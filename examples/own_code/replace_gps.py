"""Replace GPSConv: one line of a PyTorch Geometric model changes, the training loop stays."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_mean_pool

from anyorder.pyg import DropInConv

torch.manual_seed(0)
rings = [torch.stack([torch.arange(n), (torch.arange(n) + 1) % n]) for n in torch.randint(4, 12, (64,)).tolist()]
rows = [torch.randn(ring.shape[1], 16) for ring in rings]
graphs = [Data(x, torch.cat([r, r.flip(0)], 1), y=3 * x[:, 0].mean()) for x, r in zip(rows, rings, strict=True)]
convs = torch.nn.ModuleList(DropInConv(16, heads=4) for _ in range(2))  # was: GPSConv(16, GINEConv(...), heads=4)
head = torch.nn.Linear(16, 1)
optimizer = torch.optim.Adam([*convs.parameters(), *head.parameters()], lr=1e-2)
for epoch in range(6):
    for batch in DataLoader(graphs, batch_size=16, shuffle=True):
        x = batch.x
        for conv in convs:
            x = conv(x, batch.edge_index, batch.batch)
        loss = (head(global_mean_pool(x, batch.batch)).squeeze(1) - batch.y).square().mean()
        optimizer.zero_grad(), loss.backward(), optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
