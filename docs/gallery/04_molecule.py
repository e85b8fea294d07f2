"""A property of molecules from atoms and bonds, and where the answer looks."""
import matplotlib.pyplot as plt
import torch
from rdkit import Chem
from rdkit.Chem import AllChem, Crippen
from anyorder import Encoder, collate
from anyorder.algebra import select
from anyorder.convert import from_edges
from anyorder.layers.attention_maps import attention_map

torch.manual_seed(0)
SMILES = """CCO CCCO CCCCO CCCCCO CCN CCCN CCCCN CC(=O)O CCC(=O)O CCCC(=O)O c1ccccc1 Cc1ccccc1 CCc1ccccc1 Oc1ccccc1 Nc1ccccc1
Clc1ccccc1 Brc1ccccc1 CC(=O)Oc1ccccc1C(=O)O CC(=O)Nc1ccc(O)cc1 CCCCCC CCCCCCC C1CCCCC1 OC1CCCCC1 CCOCC CCOC(C)=O c1ccncc1
Cc1ccncc1 c1ccc2ccccc2c1 Oc1ccc(Cl)cc1 CC(C)O CC(C)CO CC(C)(C)O NCCO OCCO OCC(O)CO CCCCCl CCCBr N#CC CC#N CCS""".split()
ATOMS = ["C", "N", "O", "S", "Cl", "Br"]
def graph(molecule: Chem.Mol):
    atoms = torch.stack([torch.tensor([a.GetSymbol() == s for s in ATOMS]).float() for a in molecule.GetAtoms()])
    bonds = torch.tensor([[b.GetBeginAtomIdx(), b.GetEndAtomIdx()] for b in molecule.GetBonds()])
    kinds = torch.tensor([[b.GetBondTypeAsDouble()] for b in molecule.GetBonds()])
    return from_edges(bonds, num_nodes=len(atoms), node=atoms, edge=kinds)
molecules = [Chem.MolFromSmiles(text) for text in SMILES]
x, y = collate([graph(m) for m in molecules]), torch.tensor([Crippen.MolLogP(m) for m in molecules])
model = Encoder(order_in=2, orders=(2, 0), channels_in=7, channels=16, channels_out=1, heads=2, head_channels=8)
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(150):
    loss = (model(x).values.squeeze(1) - y).square().mean()
    optimiser.zero_grad(), loss.backward(), optimiser.step()
print(f"octanol-water logP of {len(SMILES)} molecules, fitted: mean squared error {loss.item():.3f}, variance {y.var():.2f}")
drug = Chem.MolFromSmiles("CC(=O)Nc1ccc(O)cc1")
layer, one = model.layers[1], model.layers[0](model.project(graph(drug)))
atoms = next(cls for cls in select(2, 0, "all") if cls.source.num_blocks == 1)
weight = attention_map(layer.attention, one.with_rows(layer.norm_attention(one.rows)), atoms).mean(0)[0].detach()
AllChem.Compute2DCoords(drug)
spots = drug.GetConformer().GetPositions()
figure, axis = plt.subplots(figsize=(5, 3.4))
for bond in drug.GetBonds():
    axis.plot(*spots[[bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()], :2].T, color="#6b7280", zorder=1)
axis.scatter(*spots[:, :2].T, s=3000 * weight, color="#e69f00"), axis.axis("equal"), axis.axis("off")
[axis.annotate(a.GetSymbol(), p[:2], ha="center", va="center") for a, p in zip(drug.GetAtoms(), spots, strict=True)]
figure.savefig("picture.svg")
