# mypy: ignore-errors
# ruff: noqa
"""plumbum: commands, a pipeline, redirection, an exit code, a changed directory and environment."""

from plumbum import ProcessExecutionError, local

echo, sort, date, sh = (local[name] for name in ("echo", "sort", "date", "sh"))
print(echo("hello"), date("+%s.%N"))
print((local["cat"]["edges.txt"] | sort["-r"] | local["head"]["-n", "2"])())
(sort["edges.txt"] > "sorted.txt")()
print(local.path("sorted.txt").read(), sh["-c", "exit 3"].run(retcode=None))
with local.env(GREETING="good morning"), local.cwd(local.path("sub")):
    print(sh("-c", "echo $GREETING; echo $$; pwd"))
try:
    sh("-c", "echo wrong >&2; exit 7")
except ProcessExecutionError as error:
    print(error.retcode, error.stderr)
