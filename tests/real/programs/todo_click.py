# mypy: ignore-errors
# ruff: noqa
"""click: a command with a group, a file argument, an environment variable, colours and an error."""

import random
import time

import click


@click.group()
@click.option("--owner", envvar="TODO_OWNER", default="nobody")
@click.pass_context
def cli(context, owner):
    context.obj = owner


@cli.command()
@click.argument("file", type=click.File())
@click.option("--pick", type=int, default=1)
@click.pass_obj
def draw(owner, file, pick):
    lines = file.read().split()
    click.secho(f"{owner} at {time.strftime('%H:%M:%S')}", fg="green")
    with click.progressbar(range(3), label="drawing") as bar:
        for _ in bar:
            pass
    click.echo(random.sample(lines, pick))
    if pick > 2:
        raise click.ClickException(f"{pick} of {len(lines)} is too many")


cli()
