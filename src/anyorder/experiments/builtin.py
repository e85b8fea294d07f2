"""The experiments of this package: names and modules, which are imported when they are asked for."""

from __future__ import annotations

from anyorder.training.registry import Command, Experiment

_HERE = "anyorder.experiments"

CHAINS = Experiment(
    "chains",
    tables={"chains": f"{_HERE}.chains.recipes"},
    types={f"{_HERE}.chains.task": ("Chains",), f"{_HERE}.chains.models": ("GraphEncoder", "GraphMLP", "MessagePassing")},
)
MOLECULES = Experiment(
    "molecules",
    tables={"molecules": f"{_HERE}.molecules.recipes"},
    types={
        f"{_HERE}.molecules.task": ("NamedMolecules", "OfficialMolecules", "OwnMolecules"),
        f"{_HERE}.molecules.models": (
            "MoleculeEncoder",
            "MoleculeFingerprint",
            "MoleculeMLP",
            "MoleculeMessagePassing",
            "MoleculeTransformer",
        ),
    },
    commands=(
        Command(
            "train molecules",
            "train on a table of SMILES, to predict numbers or classes",
            f"{_HERE}.molecules.commands:add_train",
            f"{_HERE}.molecules.seen:reason",
            aliases=("molecule",),
        ),
    ),
    predict=f"{_HERE}.molecules.commands:add_predict",
    explain=f"{_HERE}.molecules.commands:add_explain",
)
SET_TO_GRAPH = Experiment(
    "set-to-graph",
    tables={"delaunay": f"{_HERE}.set_to_graph.delaunay_recipes", "jets": f"{_HERE}.set_to_graph.jet_recipes"},
    types={
        f"{_HERE}.set_to_graph.delaunay_task": ("Delaunay",),
        f"{_HERE}.set_to_graph.jet_task": ("Jets", "OneCluster", "VertexReconstruction"),
        f"{_HERE}.set_to_graph.models": (
            "DeepSetPairs",
            "NearestNeighbourGNN",
            "PaddedMLP",
            "SetEncoder",
            "SiamesePairs",
            "SiameseTriplets",
        ),
        f"{_HERE}.set_to_graph.task": ("SetsFromFile",),
    },
    commands=(
        Command(
            "train set-to-graph",
            "train on sets of points, to predict their edges or a partition",
            f"{_HERE}.set_to_graph.commands:add_train",
            f"{_HERE}.set_to_graph.seen:reason",
            aliases=("sets", "set"),
        ),
        Command(
            "draw delaunay",
            "draw triangulations: edges that are right, missed and wrong",
            f"{_HERE}.set_to_graph.commands:add_draw",
        ),
        Command(
            "data simulate",
            "simulate jets in place of the published dataset",
            f"{_HERE}.set_to_graph.commands:add_simulate",
        ),
        Command(
            "data statistics",
            "describe samples of jets beside the official one",
            f"{_HERE}.set_to_graph.commands:add_statistics",
        ),
    ),
)
HYPERGRAPHS = Experiment(
    "hypergraphs",
    tables={
        "hypergraphs": f"{_HERE}.hypergraphs.recipes",
        "hyperedge-sets": f"{_HERE}.hypergraphs.prediction.recipes",
    },
    types={
        f"{_HERE}.hypergraphs.own": ("OwnNodes",),
        f"{_HERE}.hypergraphs.task": ("PublishedNodes",),
        f"{_HERE}.hypergraphs.models": (
            "CliqueGCN",
            "HypergraphConvNet",
            "HypergraphMLP",
            "HypergraphTransformer",
        ),
        f"{_HERE}.hypergraphs.sampling": ("ReadLimits",),
        f"{_HERE}.hypergraphs.prediction.task": ("OwnEdgeSets", "PublishedSets"),
        f"{_HERE}.hypergraphs.prediction.models": ("SetModel",),
        f"{_HERE}.hypergraphs.literature.models": ("AllSet", "EDHNN", "EHNN", "UniGCNII"),
    },
    aliases={"HypergraphPropagation": "HypergraphTransformer"},
    commands=(
        Command(
            "train hypergraph",
            "train on a hypergraph, to classify its nodes",
            f"{_HERE}.hypergraphs.commands:add_train",
            f"{_HERE}.hypergraphs.seen:reason",
            aliases=("hypergraphs",),
        ),
    ),
    predict=f"{_HERE}.hypergraphs.commands:add_predict",
)
HYPEREDGES = Experiment(
    "hyperedges",
    tables={"hyperedges": f"{_HERE}.hyperedges.recipes"},
    types={
        f"{_HERE}.hyperedges.task": ("PublishedHyperedges", "TableHyperedges"),
        f"{_HERE}.hyperedges.fact_task": ("OwnFacts",),
        f"{_HERE}.hyperedges.fact_models": ("FactEncoder",),
        f"{_HERE}.hyperedges.models": ("TupleDHNE", "TupleEncoder", "TupleMLP", "TupleSAGNN", "TupleSimilarity"),
    },
    commands=(
        Command(
            "train hyperedges",
            "train on a table of tuples, to predict which entities belong together",
            f"{_HERE}.hyperedges.commands:add_train",
            f"{_HERE}.hyperedges.seen:reason",
            aliases=("tuples", "facts"),
        ),
    ),
    predict=f"{_HERE}.hyperedges.commands:add_predict",
)
GRAPHS = Experiment(
    "graphs",
    tables={"graphs": f"{_HERE}.graphs.recipes"},
    types={
        f"{_HERE}.graphs.published": ("GivenSplits", "PublishedLinks", "TenFolds"),
        f"{_HERE}.graphs.own": ("OwnGraphs",),
        f"{_HERE}.graphs.models": ("GraphMessagePassing", "PairTransformer"),
        f"{_HERE}.graphs.cheap": ("CheapBaseline",),
    },
    commands=(
        Command(
            "train graph",
            "predict classes or numbers of graphs, nodes or links, or which nodes are linked",
            f"{_HERE}.graphs.commands:add_train",
            f"{_HERE}.graphs.seen:reason",
            aliases=("graphs",),
        ),
    ),
    predict=f"{_HERE}.graphs.commands:add_predict",
    explain=f"{_HERE}.graphs.commands:add_explain",
)
EXPRESSIVITY = Experiment(
    "expressivity",
    tables={
        "expressivity": f"{_HERE}.expressivity.recipes",
        "counting": f"{_HERE}.expressivity.counting_recipes",
    },
    types={
        f"{_HERE}.expressivity.task": ("ColourRefinement", "GraphPairs"),
        f"{_HERE}.expressivity.counting": ("Counting",),
        f"{_HERE}.expressivity.verdicts": ("Judge",),
        f"{_HERE}.expressivity.models": (
            "AllTuples",
            "ConnectedTuples",
            "DistinctTuples",
            "MatrixBaseline",
            "MessagePassingBaseline",
            "OrderEncoder",
            "OrderMLP",
            "TuplesWithin",
        ),
    },
    commands=(
        Command(
            "draw orders",
            "draw which pairs of graphs each order tells apart, and what it costs",
            f"{_HERE}.expressivity.commands:add_draw",
        ),
    ),
)
BUILTIN = (CHAINS, MOLECULES, SET_TO_GRAPH, HYPERGRAPHS, HYPEREDGES, GRAPHS, EXPRESSIVITY)
