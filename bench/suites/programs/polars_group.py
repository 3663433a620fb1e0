"""Groups, joins and sorts a table of polars."""

import os

os.environ["POLARS_OVERRIDE_TOTAL_MEMORY_MB"] = "4096"  # the default is the limit of the cgroup
import numpy  # noqa: E402
import polars  # noqa: E402

count = 4_000_000
numbers = numpy.random.default_rng(3)
table = polars.DataFrame({"key": numbers.integers(0, 200_000, count), "value": numbers.integers(0, 1 << 30, count)})
print(table.group_by("key").agg(polars.col("value").sum()).sort("key").head(3).rows())
print(table.sort("value", "key")["key"][count // 2])
print(table.join(table.group_by("key").len(), on="key")["len"].sum())
