# mypy: ignore-errors
# ruff: noqa
"""logging: a rotating file, stderr, exceptions, a filter, dates; one handler configured by dictionary."""

import logging
import logging.config
import logging.handlers
import os
import random
from pathlib import Path

logging.config.dictConfig(
    {
        "version": 1,
        "formatters": {"full": {"format": "%(asctime)s %(process)d %(name)s %(levelname)s %(lineno)d %(message)s"}},
        "handlers": {
            "file": {
                "class": "logging.handlers.RotatingFileHandler",
                "filename": "app.log",
                "maxBytes": 2000,
                "backupCount": 2,
                "formatter": "full",
            },
            "err": {"class": "logging.StreamHandler", "formatter": "full", "level": "WARNING"},
        },
        "root": {"level": "DEBUG", "handlers": ["file", "err"]},
    }
)
logger = logging.getLogger("app")
logger.addFilter(lambda record: random.random() < 0.8)
for number in range(100):
    logger.debug("step %d of %s", number, os.getpid())
    if number % 30 == 0:
        try:
            print(1 / (number - number))
        except ZeroDivisionError:
            logger.exception("at %d", number)
logging.shutdown()
for path in sorted(Path().glob("app.log*")):
    print(path, path.stat().st_size, path.read_text().count("\n"))
