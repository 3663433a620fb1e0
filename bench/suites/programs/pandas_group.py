"""Groups, joins and sorts a table of pandas."""

import numpy
import pandas

count = 3_000_000
numbers = numpy.random.default_rng(2)
table = pandas.DataFrame(
    {"key": numbers.integers(0, 100_000, count), "value": numbers.random(count), "weight": numbers.random(count)}
)
groups = table.groupby("key").agg({"value": "sum", "weight": "mean"})
print(groups.sum().round(6).to_dict())
joined = table.merge(groups.reset_index(), on="key")
print(len(joined), round(float(joined["value_y"].sum()), 3))
print(table.sort_values("value").iloc[count // 2]["key"])
