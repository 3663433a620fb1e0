"""Computes with columns of Arrow, and groups a table by text."""

import numpy
import pyarrow
import pyarrow.compute as compute

count = 2_000_000
numbers = pyarrow.array(numpy.random.default_rng(4).integers(0, 300_000, count))
sums = compute.add(compute.multiply(numbers, 3), numbers)
print(compute.sum(sums).as_py())
table = pyarrow.table({"number": numbers, "text": compute.cast(sums, pyarrow.string())})
groups = table.group_by("text").aggregate([("number", "sum")])
print(groups.num_rows, compute.max(groups["number_sum"]).as_py())
print(compute.take(table, compute.sort_indices(table["text"]))["number"][count // 2].as_py())
