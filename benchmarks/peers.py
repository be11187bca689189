"""Reference implementations for the kernels: other libraries, and published formulations in a few lines."""

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors


def sklearn_kmeans(X: np.ndarray, k: int, seed: int) -> float:
    return float(KMeans(k, random_state=seed, n_init=1).fit(X).inertia_)


def faiss_neighbours(Q: np.ndarray, W: np.ndarray, m: int) -> np.ndarray:
    import faiss

    index = faiss.IndexFlatL2(W.shape[1])
    index.add(W)
    return index.search(Q, m)[1]


def sklearn_neighbours(
    Q: np.ndarray, W: np.ndarray, m: int, metric: str = "euclidean"
) -> np.ndarray:
    index = NearestNeighbors(n_neighbors=m, metric=metric, algorithm="brute").fit(W)
    return index.kneighbors(Q, return_distance=False)


def alternating_medoids(X: np.ndarray, k: int) -> float:
    """k-medoids as in the paper: full distance matrix, most central rows first, alternating updates."""
    D = pairwise_distances(X)
    medoids = np.argpartition(D.sum(axis=1), k - 1)[:k]
    for _ in range(300):
        labels, old = np.argmin(D[medoids], axis=0), medoids.copy()
        for j in range(k):
            rows = np.flatnonzero(labels == j)
            costs = D[np.ix_(rows, rows)].sum(axis=1)
            if costs.min() < costs[np.argmax(rows == medoids[j])]:
                medoids[j] = rows[np.argmin(costs)]
        if np.array_equal(old, medoids):
            break
    return float(D[medoids].min(axis=0).sum())


def inverse_least_squares(X: np.ndarray, y: np.ndarray, reg: float) -> np.ndarray:
    """The published solution in float32: covariance about the mean, its inverse, class means."""
    data, labels = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))
    count = int(labels.max()) + 1
    mean = data.mean(dim=0)
    about = data - mean
    total = about.T @ about / len(data) + torch.outer(mean, mean)
    means = torch.stack([data[labels == c].mean(dim=0) for c in range(count)])
    return (
        means @ torch.inverse(total + reg * torch.eye(data.shape[1])) / count
    ).numpy()


def torch_farthest(X: np.ndarray, k: int, first: int) -> list[int]:
    """Farthest points as published: recompute the distances to all chosen rows in every step."""
    data, chosen = torch.from_numpy(X), [first]
    left = [i for i in range(len(X)) if i != first]
    while len(chosen) < k:
        distances = torch.cdist(data[left], data[chosen]).min(dim=1).values
        chosen.append(left.pop(int(distances.argmax())))
    return chosen


def whole_maxima(Q: np.ndarray, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The maximum score per class, from the full score matrix."""
    return np.maximum.reduceat(Q @ W.T, starts, axis=1)
