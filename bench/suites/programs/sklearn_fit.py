"""Fits clusters and boosted trees of scikit-learn."""

import numpy
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor

numbers = numpy.random.default_rng(0).random((300_000, 20))
goal = numbers[:, 0] * 3 + numbers[:, 1]
print(round(KMeans(8, n_init=1, max_iter=8, random_state=0).fit(numbers).inertia_, 1))
print(round(HistGradientBoostingRegressor(max_iter=10, random_state=0).fit(numbers, goal).score(numbers, goal), 5))
