"""`voice-gateway app`: check, show, evaluate, make, pack and unpack exported agent apps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gateway import demo
from gateway.agent.app import read_app
from gateway.agent.app.check import Report, Severity, check_app
from gateway.agent.app.document import to_yaml
from gateway.agent.app.files import FolderFiles, ZipFiles, open_files
from gateway.agent.app.write import Format, refuse_full, root_name, write_folder
from gateway.agent.app.zip import write_zip
from gateway.cli.app_tree import app_data, app_tree
from gateway.cli.evaluate import evaluate
from gateway.cli.output import FAILED, progress, show_json
from gateway.errors import AppError

commands = typer.Typer(
    name="app",
    help="""Check, show, evaluate, make, pack and unpack exported agent apps.

    voice-gateway app init my_app && voice-gateway app check my_app

    voice-gateway app show my_app.zip

    voice-gateway app evaluate my_app

    voice-gateway app unpack my_app.zip my_app && voice-gateway app pack my_app my_app2.zip
    """,
    no_args_is_help=True,
    rich_markup_mode=None,
)

commands.command()(evaluate)

_NAME_LINE = "displayName: My Agent\n"

AppPath = Annotated[
    Path, typer.Argument(metavar="PATH", help="Folder or zip of an exported agent app.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ObjectFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Write all objects in this format; default: as they are."),
]


@commands.command()
def check(
    path: AppPath,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail the check too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find every problem of an app: where it is, what is wrong, how to mend it.

    voice-gateway app check my_app

    voice-gateway app check my_app.zip --json

    Exit code 0: no errors; 1: errors (with --strict: or warnings); 2: there is no app.
    """
    report = check_app(path)
    if as_json:
        show_json(report.to_json())
    else:
        _show_report(report)
    if report.errors or (strict and report.warnings):
        raise typer.Exit(FAILED)


def _show_report(report: Report) -> None:
    for problem in report.problems:
        typer.echo(f"{problem.place}: {problem.severity} {problem.code}: {problem.message}")
        typer.echo(f"  {problem.hint}")
    mark = "✗" if report.errors else "✓"
    typer.echo(
        f"{mark} {report.path}: {_count(report.errors, Severity.ERROR)}, "
        f"{_count(report.warnings, Severity.WARNING)}"
    )


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


@commands.command()
def show(path: AppPath, as_json: AsJson = False) -> None:
    """Draw an app as a tree: agents, tools, callbacks, voices.

    voice-gateway app show my_app

    voice-gateway app show my_app.zip --json
    """
    app = read_app(path)
    if as_json:
        show_json(app_data(app))
    else:
        Console(highlight=False).print(app_tree(app))


@commands.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A new or empty folder.")],
    name: Annotated[
        str | None, typer.Option("--name", help="The app's name; default: the folder's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a small app to start from: two agents, a tool, two callbacks, evaluations.

    voice-gateway app init my_app

    voice-gateway app init my_app --name "Service Line"

    It answers as it is, by rules in scripted_model.yaml.
    """
    template = FolderFiles(demo.TEMPLATE_PATH)
    written = write_folder(template, path)
    title = name or path.resolve().name.replace("_", " ").strip() or "My Agent"
    app_file = path / "app.yaml"
    text = app_file.read_text(encoding="utf-8")
    named = text.replace(_NAME_LINE, to_yaml({"displayName": title}), 1)
    app_file.write_text(named, encoding="utf-8")
    if as_json:
        show_json({"app": str(path), "displayName": title, "files": written})
        return
    typer.echo(f"✓ {path}: {written} files")
    progress(
        f"Next:\n  voice-gateway app check {path}\n"
        f"  voice-gateway app evaluate {path}\n"
        f"  voice-gateway simulate {path}/scenarios/opening_hours.yaml\n"
        f"  voice-gateway serve --app {path}"
    )


@commands.command()
def pack(
    path: AppPath,
    target: Annotated[
        Path | None,
        typer.Argument(metavar="[ZIP]", help="The zip to write; default: the app's name."),
    ] = None,
    format_: ObjectFormat = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a zip that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pack an app into a zip as exports have it: one root folder of the app's name.

    voice-gateway app pack my_app

    voice-gateway app pack my_app export.zip --format json

    Files go in as they are; --format rewrites objects of the other format, data unchanged and
    comments lost. Equal apps make equal zips. Hidden files and compiled code stay out.
    """
    files = open_files(path)
    root = root_name(files)
    target = target or Path(f"{root}.zip")
    written = write_zip(files, target, root, format_, replace=force)
    _written(target, written, as_json)


@commands.command()
def unpack(
    path: Annotated[Path, typer.Argument(metavar="ZIP", help="Zip of an exported agent app.")],
    target: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="A new or empty folder; default: the zip's name."),
    ] = None,
    format_: ObjectFormat = None,
    as_json: AsJson = False,
) -> None:
    """Unpack the zip of an app into a folder; nothing of an unsafe zip is written.

    voice-gateway app unpack my_app.zip

    voice-gateway app unpack my_app.zip my_app --format yaml
    """
    files = open_files(path)
    if not isinstance(files, ZipFiles):
        raise AppError(
            "app.zip", "this is a folder, not a zip", where=str(path), hint="Name the zip."
        )
    target = target or Path(path.stem)
    refuse_full(target)
    written = write_folder(files, target, format_)
    _written(target, written, as_json)


def _written(target: Path, files: int, as_json: bool) -> None:
    if as_json:
        show_json({"path": str(target), "files": files})
    else:
        typer.echo(f"✓ {target}: {files} files")
