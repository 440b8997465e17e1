# mypy: ignore-errors
# ruff: noqa
"""peewee: an ORM on a sqlite file with a user function and a rollback."""

import datetime
import random

import peewee

database = peewee.SqliteDatabase("notes.db", pragmas={"foreign_keys": 1})


class Note(peewee.Model):
    text = peewee.CharField()
    weight = peewee.FloatField(default=random.random)
    at = peewee.DateTimeField(default=datetime.datetime.now)

    class Meta:
        database = database


@database.func()
def backwards(text):
    return text[::-1]


database.connect()
database.create_tables([Note])
for number in range(20):
    Note.create(text=f"note {number}")
for note in Note.select().order_by(Note.weight).limit(5):
    print(note.id, note.text, note.weight, note.at)
print([row.turned for row in Note.select(peewee.fn.backwards(Note.text).alias("turned")).limit(3)])
try:
    with database.atomic():
        Note.delete().execute()
        raise RuntimeError("changed our mind")
except RuntimeError as error:
    print(error, Note.select().count(), "notes stay")
print(database.execute_sql("select random(), datetime('now')").fetchone())
