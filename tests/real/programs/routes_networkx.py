# mypy: ignore-errors
# ruff: noqa
"""networkx: a random graph, its shortest paths and centrality, written as GraphML and read again."""

import random

import networkx as nx

graph = nx.gnp_random_graph(40, 0.15)
for edge in graph.edges:
    graph.edges[edge]["weight"] = round(random.random(), 3)
largest = graph.subgraph(max(nx.connected_components(graph), key=len))
print(graph, len(largest), nx.diameter(largest))
nodes = sorted(largest)
print(nx.shortest_path(largest, nodes[0], nodes[-1], weight="weight"))
print(sorted(nx.betweenness_centrality(graph).items(), key=lambda item: -item[1])[:3])
nx.write_graphml(graph, "graph.graphml")
print(nx.read_graphml("graph.graphml"), nx.read_edgelist("edges.txt", nodetype=str).number_of_edges())
