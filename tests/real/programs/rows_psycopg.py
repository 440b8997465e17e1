# mypy: ignore-errors
# ruff: noqa
"""psycopg in its pure Python implementation, which calls libpq by ctypes: rows, a transaction, a notification."""

import sys
import threading

import psycopg

print(psycopg.pq.__impl__)
address = f"host=127.0.0.1 port={sys.argv[1]} user=tester dbname=postgres"
with psycopg.connect(address, autocommit=True) as connection:
    connection.execute("create table item (id serial primary key, name text, luck float default random())")
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany("insert into item (name) values (%s)", [(f"item {number}",) for number in range(50)])
    print(connection.execute("select count(*), min(luck), max(now()) from item").fetchone())


def raise_luck():
    with psycopg.connect(address) as own:
        for _ in range(10):
            own.execute("update item set luck = luck + 1 where id = 1")
            own.commit()


threads = [threading.Thread(target=raise_luck) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with psycopg.connect(address) as connection:
    print(connection.execute("select luck from item where id = 1").fetchone())
    try:
        connection.execute("select * from nowhere")
    except psycopg.Error as error:
        print(type(error).__name__, error)
print("the server was used")
