# mypy: ignore-errors
# ruff: noqa
"""arrow and dateutil: now in several time zones, humanized, rules, parsing."""

import arrow
from dateutil import parser, relativedelta, rrule, tz

now = arrow.now()
print(now, arrow.utcnow(), now.to("Asia/Tokyo"), now.shift(weeks=-3).humanize(), now.tzinfo)
print(now.floor("month"), now.dehumanize("2 hours ago"), arrow.get("2024-05-01").humanize(locale="de"))
local = now.datetime
print(local.astimezone(tz.gettz("America/New_York")), tz.tzlocal().utcoffset(local))
print(parser.parse("next 5 May 2031", fuzzy=True) - parser.parse("10:00", default=local.replace(tzinfo=None)))
print(list(rrule.rrule(rrule.MONTHLY, count=3, dtstart=local))[1:], local + relativedelta.relativedelta(months=1))
