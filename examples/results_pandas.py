"""Rank the methods of a study with pandas: python results_pandas.py results.parquet

The file is written by `imprint study export DIR`. An instance is a backbone, a data set and a task; a method's
accuracy on it is the median over seeds. The best method has rank 1; methods with equal accuracy share their mean rank.
"""

import sys

import pandas as pd

INSTANCE = ["study", "backbone", "dataset", "task"]

results = pd.read_parquet(sys.argv[1])
medians = results.groupby([*INSTANCE, "method"], as_index=False)["accuracy"].median()
medians["rank"] = medians.groupby(INSTANCE)["accuracy"].rank(ascending=False)
table = (
    medians.groupby("method")[["accuracy", "rank"]]
    .mean()
    .sort_values(["rank", "method"])
)
print("method\taccuracy, %\taverage rank")
for method, row in table.iterrows():
    print(f"{method}\t{100 * row['accuracy']:.2f}\t{row['rank']:.2f}")
