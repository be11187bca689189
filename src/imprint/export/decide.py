"""From embeddings to scores and probabilities, as ONNX nodes."""

import numpy as np

from imprint.aggregators.max import Max
from imprint.aggregators.nearest import SMALLEST, Nearest
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.export.graph import Graph
from imprint.export.head import Head

SCORES, PROBABILITIES = "scores", "probabilities"


def decide(g: Graph, x: str, head: Head) -> None:
    """Add the nodes that turn embeddings `x` into the two outputs."""
    dtype = head.weights.dtype
    query = g.unit_rows(x, dtype) if head.unit else x
    if isinstance(head.aggregator, Max):
        _max(g, query, head)
        scaled = g.add("Div", SCORES, g.constant(head.scale, dtype))
        g.add("Softmax", scaled, axis=1, result=PROBABILITIES)
    else:
        _nearest(g, g.cast(query, np.float64), head, head.aggregator)


def _max(g: Graph, query: str, head: Head) -> None:
    weights = g.constant(head.weights, head.weights.dtype)
    if head.linear:
        g.add("Gemm", query, weights, transB=1, result=SCORES)
        return
    products = g.add("Gemm", query, weights, transB=1)
    own = g.add("Gather", products, g.constant(_own(head.owners), np.int64), axis=1)  # (n, C, most)
    g.add("Identity", g.reduce("ReduceMax", own, 2), result=SCORES)


def _own(owners: Array) -> Array:
    """The proxies of every class by index; a class with fewer than others repeats its first.  # (C, most)"""
    counts = np.bincount(owners)
    starts = np.cumsum(counts) - counts
    steps = np.arange(counts.max())[None, :]
    return np.asarray(starts[:, None] + np.where(steps < counts[:, None], steps, 0))


def _nearest(g: Graph, query: str, head: Head, rule: Nearest) -> None:
    """Votes of the nearest proxies; like the library's, distances are double precision."""
    proxies = g.cast(g.constant(head.weights, head.weights.dtype), np.float64)
    distances, index = _neighbours(g, query, proxies, head, rule)
    owners = g.unsqueeze(g.add("Gather", g.constant(head.owners, np.int64), index), 2)
    mine = g.cast(g.add("Equal", owners, g.constant(np.arange(len(head.classes)), np.int64)), np.float64)  # (n, m, C)
    if rule.weighting == "distance":
        inverse = g.add("Reciprocal", g.add("Add", distances, g.constant(SMALLEST, np.float64)))
        votes = g.reduce("ReduceSum", g.add("Mul", mine, g.unsqueeze(inverse, 2)), 1)
        share = g.add("Div", votes, g.reduce("ReduceSum", votes, 1, keep=True))
        g.cast(share, head.weights.dtype, result=SCORES)
        g.add("Identity", SCORES, result=PROBABILITIES)
        return
    m = g.constant(rule.m, np.float64)
    g.cast(g.add("Div", g.reduce("ReduceSum", mine, 1), m), head.weights.dtype, result=PROBABILITIES)
    votes = g.add("Add", mine, _ties(g, mine, rule.m))
    g.cast(g.add("Div", g.reduce("ReduceSum", votes, 1), m), head.weights.dtype, result=SCORES)


def _ties(g: Graph, mine: str, m: int) -> str:
    """Less than a vote for the first of a class, more the nearer it is."""
    seen = g.add("CumSum", mine, g.constant(1, np.int64), exclusive=1)
    first = g.add("Mul", mine, g.cast(g.add("Equal", seen, g.constant(0, np.float64)), np.float64))
    return g.add("Mul", first, g.constant(((m - np.arange(m)) / (2 * m))[:, None], np.float64))


def _neighbours(g: Graph, query: str, proxies: str, head: Head, rule: Nearest) -> tuple[str, str]:
    """Distances and indices of the m nearest proxies, nearest first.  # (n, m), (n, m)"""
    m = g.constant([rule.m], np.int64)
    if rule.metric == "cosine":
        query, proxies = g.unit_rows(query, np.float64), g.unit_rows(proxies, np.float64)
        away = g.add("Sub", g.constant(1, np.float64), g.add("Gemm", query, proxies, transB=1))
        found = g.split("TopK", 2, g.add("Max", away, g.constant(0, np.float64)), m, largest=0)
        return found[0], found[1]
    if rule.metric != "euclidean":
        raise ParameterError(
            f"export(to='onnx'): {head.aggregator} has no graph; the metric must be euclidean or cosine."
        )
    lengths = np.square(head.weights.astype(np.float64)).sum(axis=1)
    products = g.add("Mul", g.add("Gemm", query, proxies, transB=1), g.constant(2, np.float64))
    order = g.add("Sub", g.constant(lengths, np.float64), products)  # squared distances, but for the query's length
    _, index = g.split("TopK", 2, order, m, largest=0)
    apart = g.add("Sub", g.unsqueeze(query, 1), g.add("Gather", proxies, index))  # (n, m, d)
    return g.add("Sqrt", g.reduce("ReduceSumSquare", apart, 2)), index
