# mypy: ignore-errors
# ruff: noqa
"""The fields of a schema are kept in a set: a record is dumped in another order in some runs.

marshmallow 3.19.0; https://github.com/marshmallow-code/marshmallow/issues/988
"""

from marshmallow import Schema, fields


class Person(Schema):
    name = fields.String()
    mail = fields.String()
    phone = fields.String()


text = Person().dumps({"name": "ann", "mail": "ann@example.org", "phone": "1"})
print(text)
assert text.startswith('{"name"'), "the table's first column is not the name"
