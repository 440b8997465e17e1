# mypy: ignore-errors
# ruff: noqa
"""configparser and csv: settings with interpolation from the environment steer a report that is written and read."""

import configparser
import csv
import datetime
import os
import socket
import sys
from pathlib import Path

config = configparser.ConfigParser(os.environ, interpolation=configparser.ExtendedInterpolation())
config.read(["settings.ini", "missing.ini"])
section = config["report"]
print(section["owner"], section.getint("digits"), socket.gethostname(), os.getcwd())
with open("sales.csv", newline="") as source, open("report.csv", "w", newline="") as target:
    writer = csv.DictWriter(target, ["city", "total", "written"])
    writer.writeheader()
    totals = {}
    for row in csv.DictReader(source):
        totals[row["city"]] = totals.get(row["city"], 0) + float(row["amount"])
    for city, total in totals.items():
        now = datetime.datetime.now(datetime.UTC).isoformat()
        writer.writerow({"city": city, "total": round(total, section.getint("digits")), "written": now})
print(Path("report.csv").read_text())
config["report"]["last"] = str(datetime.date.today())
with open("settings.new.ini", "w") as file:
    config.write(file)
print(list(csv.reader(open("report.csv")))[-1], file=sys.stderr)
