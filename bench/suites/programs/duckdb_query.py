"""Fills a table of DuckDB in memory, then groups, joins and sorts it."""

import duckdb

base = duckdb.connect()
base.execute("set threads=2")
base.execute("set memory_limit='4GB'")  # the default is a share of the limit of the cgroup
base.execute(
    "create table t as select range i, hash(range) % 1000003 k, (hash(range * 7) % 1000) v, md5(range::varchar) s "
    "from range(3000000)"
)
for query in (
    "select count(*), sum(v), max(s) from t",
    "select k, count(*) n, sum(v) from t group by k order by n desc, k limit 3",
    "select count(*) from t a join t b on a.k = b.i",
    "select s from t order by s limit 2",
):
    print(base.execute(query).fetchall())
