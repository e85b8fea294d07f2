"""Classes and numbers of graphs, nodes and links, on published sets and on people's own graphs."""
