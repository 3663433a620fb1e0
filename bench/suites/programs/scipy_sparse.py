"""Ranks the nodes of a random graph, and multiplies sparse matrices of SciPy."""

import numpy
from scipy import sparse

nodes, edges = 400_000, 6_000_000
numbers = numpy.random.default_rng(5)
source, target = numbers.integers(0, nodes, edges), numbers.integers(0, nodes, edges)
graph = sparse.csr_matrix((numpy.ones(edges), (source, target)), shape=(nodes, nodes))
out = numpy.asarray(graph.sum(axis=1)).ravel()
step = (sparse.diags(1 / numpy.maximum(out, 1)) @ graph).T.tocsr()
rank = numpy.full(nodes, 1 / nodes)
for _ in range(10):
    rank = 0.15 / nodes + 0.85 * (step @ rank)
print(int(rank.argmax()), round(float(rank.max() * nodes), 9))
print((graph[:4000] @ graph).nnz)
