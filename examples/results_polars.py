"""Rank the methods of a study with polars: python results_polars.py results.parquet

The file is written by `imprint study export DIR`. An instance is a backbone, a data set and a task; a method's
accuracy on it is the median over seeds. The best method has rank 1; methods with equal accuracy share their mean rank.
"""

import sys

import polars as pl

INSTANCE = ["study", "backbone", "dataset", "task"]

table = (
    pl.scan_parquet(sys.argv[1])
    .group_by(*INSTANCE, "method")
    .agg(pl.col("accuracy").median())
    .with_columns(pl.col("accuracy").rank(descending=True).over(INSTANCE).alias("rank"))
    .group_by("method")
    .agg(pl.col("accuracy", "rank").mean())
    .sort("rank", "method")
    .collect()
)
print("method\taccuracy, %\taverage rank")
for row in table.iter_rows(named=True):
    print(f"{row['method']}\t{100 * row['accuracy']:.2f}\t{row['rank']:.2f}")
