# mypy: ignore-errors
# ruff: noqa
"""faker: people in three languages, unseeded."""

from faker import Faker

fake = Faker(["en_US", "de_DE", "ja_JP"])
for _ in range(10):
    print(fake.name(), fake.address().replace("\n", ", "), fake.date_this_decade(), fake.uuid4(), sep=" | ")
print(fake.profile(fields=["job", "company", "birthdate"]), fake.password(), fake.unix_time())
