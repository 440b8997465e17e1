# mypy: ignore-errors
# ruff: noqa
"""pg8000: rows, a transaction that is rolled back, a notification, three threads that change the same row."""

import sys
import threading

import pg8000.dbapi
import pg8000.native

place = {"user": "tester", "host": "127.0.0.1", "port": int(sys.argv[1]), "database": "postgres"}
connection = pg8000.native.Connection(**place)
connection.run(
    "create table item (id serial primary key, name text, luck float default random(), made timestamptz default now())"
)
for number in range(50):
    connection.run("insert into item (name) values (:name)", name=f"item {number}")
print(connection.run("select id, name, luck, made from item order by luck limit 3"))
waits = []


def raise_luck(name):
    own = pg8000.dbapi.connect(**place)
    cursor = own.cursor()
    for _ in range(10):
        cursor.execute("update item set luck = luck + 1 where id = 1 returning luck")
        waits.append((name, cursor.fetchone()[0]))
        own.commit()
    cursor.execute("delete from item")
    own.rollback()
    own.close()


threads = [threading.Thread(target=raise_luck, args=(name,)) for name in "abc"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(waits)
print(connection.run("select count(*), max(luck) from item"))
connection.run("listen news")
other = pg8000.native.Connection(**place)
other.run("notify news, 'hello'")
connection.run("select 1")
print([tuple(each)[1:] for each in connection.notifications])
try:
    connection.run("select * from nowhere")
except pg8000.native.DatabaseError as error:
    print(error.args[0]["M"])
for each in (connection, other):
    each.close()
print("the server was used")
