"""Make numbered transfers between two accounts of a PostgreSQL database, each in a transaction, and enter them in a ledger.

A transfer has its number as a key. Where the connection is lost, nothing shows whether its transaction was committed:
so the program connects again, and asks for the key.
"""
import sys

from pg8000.exceptions import InterfaceError
from pg8000.native import Connection

count, port, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def connect():
    while True:
        try:
            connection = Connection("tester", host="127.0.0.1", port=port, database=name, ssl_context=False)
            # Only one session has it, so whatever the lost one still does is done before this one asks.
            connection.run("select pg_advisory_lock(1)")
            return connection
        except (InterfaceError, OSError) as error:
            print("cannot connect yet:", error, file=sys.stderr)


def transfer(connection, number):
    connection.run("begin")
    connection.run("insert into transfers (key) values (:key)", key=number)
    connection.run("update accounts set balance = balance - 1 where name = 'from'")
    connection.run("update accounts set balance = balance + 1 where name = 'to'")
    connection.run("commit")


connection = connect()
connection.run("create table if not exists transfers (place serial, key integer)")
connection.run("create table if not exists accounts (name text primary key, balance integer)")
connection.run("insert into accounts values ('from', 0), ('to', 0) on conflict do nothing")
with open("ledger", "ab", buffering=0) as ledger:
    number = 0
    while number < count:
        try:
            # After a lost connection it may have been made. The key is not unique: what is doubled shows.
            if not connection.run("select 1 from transfers where key = :key", key=number):
                transfer(connection, number)
        except (InterfaceError, OSError):
            connection = connect()
            continue
        ledger.write(b"%d\n" % number)
        number += 1
while True:
    try:
        keys = [key for key, in connection.run("select key from transfers order by place")]
        balances = dict(connection.run("select name, balance from accounts"))
        break
    except (InterfaceError, OSError):
        connection = connect()
assert keys == list(range(count)), keys
assert balances == {"from": -count, "to": count}, balances
try:
    connection.close()
except (InterfaceError, OSError):
    pass  # lost
print("entered", count)
