# mypy: ignore-errors
# ruff: noqa
"""pandas: reads a CSV file, adds random columns and the time, groups, writes CSV and JSON, reads them again."""

import numpy as np
import pandas as pd

sales = pd.read_csv("sales.csv", parse_dates=["day"])
sales["noise"] = np.random.default_rng().normal(size=len(sales))
sales["old_noise"] = np.random.rand(len(sales))
sales["at"] = pd.Timestamp.now()
by_city = sales.groupby("city")[["amount", "noise", "old_noise"]].agg(["sum", "mean"])
print(by_city.to_string())
print(sales.sample(3)[["city", "day", "amount", "at"]].to_string())
by_city.to_csv("by_city.csv")
sales.to_json("sales.json", orient="records")
print(pd.read_csv("by_city.csv", header=[0, 1], index_col=0).shape, len(pd.read_json("sales.json")))
print(sales.set_index("day").resample("MS")["amount"].sum())
