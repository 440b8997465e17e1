"""json, re and csv: what many programs do with text, in C code that crosses no gate."""

import csv
import io
import json
import re

_PATTERN = re.compile(r"(\w+)@(\w+)\.(com|org)|#(\d{3,})")


def _lines(count: int) -> list[str]:
    return [
        f"user{number}@host{number % 97}.org wrote #{number * 31} about item {number % 13}" for number in range(count)
    ]


def main() -> None:
    """Works on the same records in three formats."""
    lines = _lines(2_000)
    total = 0
    for number in range(60):
        records = [
            {"id": at, "text": text, "tags": ["a", "b", str(at % 5)], "price": at * 0.5}
            for at, text in enumerate(lines)
        ]
        total += len(json.loads(json.dumps(records, sort_keys=True)))
        total += sum(len(found.group(0)) for text in lines for found in _PATTERN.finditer(text))
        total += len(_PATTERN.sub(r"<\1>", "\n".join(lines)))
        table = io.StringIO()
        csv.writer(table).writerows([each["id"], each["text"], each["price"]] for each in records)
        table.seek(0)
        total += sum(len(row) for row in csv.reader(table)) + number
    print(total)


main()
