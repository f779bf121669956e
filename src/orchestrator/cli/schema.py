"""`orchestrator schema`: JSON Schemas, for editors and for programs that read the output."""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation

KINDS = ("config", "marker", "explain", "tick", "status", "next", "check")


@click.command("schema", context_settings=SETTINGS)
@click.option(
    "--of",
    "kind",
    type=click.Choice(KINDS),
    default="config",
    show_default=True,
    help="Of orchestrator.yaml, of the marker, or of a command's JSON.",
)
@common
@click.pass_obj
def command(run: Invocation, kind: str) -> int:
    r"""Print a JSON Schema (draft 2020-12).

    Editors check orchestrator.yaml as you type with `schema --of config` saved as
    orchestrator.schema.json and this first line in the file:

    \b
        # yaml-language-server: $schema=orchestrator.schema.json
    """
    from orchestrator.report.schemas import schema_text

    run.console.out(schema_text(kind))
    return 0
