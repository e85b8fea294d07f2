"""Node classification: who stays with whom in Zachary's karate club, from four known members of each side."""
import matplotlib.pyplot as plt
import networkx as nx
import torch
from anyorder import Encoder
from anyorder.convert import from_networkx

torch.manual_seed(0)
club = nx.karate_club_graph()
side = torch.tensor([int(club.nodes[node]["club"] == "Officer") for node in club])
for node in club:  # members are known by whom they know
    club.nodes[node]["known"] = [float(node == other or club.has_edge(node, other)) for other in club]
x = from_networkx(club, node=("known",), edge=("weight",))
seen = torch.cat([(side == value).nonzero()[:4, 0] for value in (0, 1)])
hidden = torch.tensor([node for node in range(len(side)) if node not in seen.tolist()])
sizes = {"channels_in": x.channels, "channels": 16, "channels_out": 2, "heads": 2, "head_channels": 8}
model = Encoder(order_in=2, orders=(2, 1), dropout=0.3, **sizes)
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
for step in range(1, 121):
    loss = torch.nn.functional.cross_entropy(model(x).rows[seen], side[seen])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 40 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
with torch.inference_mode():
    guess = model.eval()(x).rows.argmax(1)
print(f"members that were not seen: {(guess[hidden] == side[hidden]).float().mean():.1%} right of {len(hidden)}")
figure, axis = plt.subplots(figsize=(5, 4))
colours = ["#0072b2" if value == 0 else "#e69f00" for value in guess.tolist()]
edges = ["#d55e00" if wrong else "#ffffff" for wrong in (guess != side).tolist()]
style = {"node_color": colours, "edgecolors": edges, "font_size": 7, "node_size": 160}
nx.draw_networkx(club, nx.spring_layout(club, seed=1), ax=axis, **style)
axis.set_axis_off()
figure.savefig("picture.svg")
