"""The published graphs: counts as their sources say, and their parts."""

from __future__ import annotations

import numpy as np
import pytest

from anyorder.experiments.graphs.published import GivenSplits, PublishedLinks, TenFolds
from data_folder import DATA


@pytest.mark.skipif(not (DATA / "graphs").is_dir(), reason=f"no graphs in {DATA}")
class TestPublished:
    @pytest.mark.parametrize(
        ("name", "graphs", "nodes", "edges"), [("MUTAG", 188, 3371, 3721), ("Mutagenicity", 4337, 131488, 133447)]
    )
    def test_molecules(self, name, graphs, nodes, edges):
        task = TenFolds(dataset=name)
        found = task.read(DATA)
        assert (found.num_graphs, found.num_nodes, len(found.edges), found.directed) == (graphs, nodes, edges, False)
        tested = [task.parts(found, fold).test for fold in range(10)]
        assert sorted(np.concatenate(tested).tolist()) == list(range(graphs))

    @pytest.mark.parametrize(("name", "nodes", "features"), [("wisconsin", 251, 1703), ("film", 7600, 932)])
    def test_given_splits(self, name, nodes, features):
        task = GivenSplits(dataset=name)
        found = task.read(DATA)
        assert found.num_nodes == nodes and len(found.node_columns.number_names) == features
        parts = task.parts(found, 3)
        assert len(parts.train) + len(parts.valid) + len(parts.test) == nodes
        assert task.inputs(found).node_columns.names == found.node_columns.number_names

    def test_links_have_no_labels_and_no_loops(self):
        found = PublishedLinks(dataset="wisconsin").read(DATA)
        assert not found.node_columns.category_names and (found.edges[:, 0] != found.edges[:, 1]).all()
