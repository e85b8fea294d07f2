"""The usual names of columns in tables of graphs, and the endings of these."""

FIRST = ("source", "src", "from", "u", "node1", "node_1", "start", "head", "id_1", "id1")
SECOND = ("target", "dst", "to", "v", "node2", "node_2", "end", "tail", "id_2", "id2")
NODE = ("node", "id", "node_id", "nodeid", "name")
GRAPH = ("graph", "graph_id", "graphid", "graph_indicator")
TABLES = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".parquet")
