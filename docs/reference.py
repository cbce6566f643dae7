"""Write the reference of the site: a page for each command from the program itself, and for each format from its JSON Schema.

The build of the site calls `write`; the pages are in no commit, so none can be out of date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup
from typer.main import get_command

from provisioner.cli.catalogue import COMMANDS, MATRIX_COMMANDS, Entry
from provisioner.cli.commands import PROGRAM, PROGRAM_ENTRY, application, exit_codes
from provisioner.document import write_together
from provisioner.schemas.shipped import SCHEMAS, schema_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer._click import Context

FOLDER = Path(__file__).parent / "reference"

Schema = dict[str, Any]


def write() -> None:
    """Write every page into `docs/reference`; a page of a command that is gone goes, and one that says the same stays.

    Two builds may do so at the same time: a page is there as a whole or not at all.
    """
    FOLDER.mkdir(exist_ok=True)
    pages = {FOLDER / f"{name}.md": text.encode() for name, text in (command_pages() | format_pages()).items()}
    for path in FOLDER.glob("*.md"):
        if path not in pages:
            path.unlink(missing_ok=True)
    write_together({path: text for path, text in pages.items() if not path.is_file() or path.read_bytes() != text})


def entries() -> dict[str, Entry]:
    """Return what the help says of every command, by the words that call it: `matrix show`."""
    return COMMANDS | {f"matrix {name}": entry for name, entry in MATRIX_COMMANDS.items()}


def page_name(words: str) -> str:
    """Return the name of the page, and of the manual page, of a command: `provision-matrix-show`."""
    return "-".join((PROGRAM, *words.split()))


def command_pages() -> dict[str, str]:
    """Return the pages of the program and of its commands by name."""
    program = get_command(application())
    context = program.context_class(program, info_name=PROGRAM, **program.context_settings)
    return {PROGRAM: _page(context, PROGRAM_ENTRY)} | {
        page_name(words): _page(_context(context, words.split()), entry) for words, entry in entries().items()
    }


def _context(context: Context, words: list[str]) -> Context:
    """Return the context of the command that the words call."""
    for word in words:
        group = context.command
        assert isinstance(group, TyperGroup), word
        found = group.get_command(context, word)
        assert found is not None, word
        context = found.context_class(found, info_name=word, parent=context, **found.context_settings)
    return context


def _page(context: Context, entry: Entry) -> str:
    """Return the page of the command of a context."""
    command, called = context.command, context.command_path
    # What the help ends with is in the entry, and Markdown wants paragraphs in one line.
    about = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    usage = " ".join((called, *command.collect_usage_pieces(context)))
    below = [f"{called} {name}" for name in (command.list_commands(context) if isinstance(command, TyperGroup) else ())]
    sections = {
        "Synopsis": [f"```text\n{usage}\n```", *map(_escaped, about)],
        "Arguments": _parameters(context, "argument"),
        "Options": _parameters(context, "option"),
        "Commands": [_term(f"[]({page_name(name)}.md)", entries()[name].summary) for name in map(_words, below)],
        "Reads and writes": [_term("reads", entry.reads), _term("writes", entry.writes)],
        "Exit codes": [_term(f"`{code}`", text) for code, text in exit_codes(entry)],
        "Examples": ["\n".join(("```console", *(f"$ {example}" for example in entry.examples), "```"))],
    }
    tree = ("```{toctree}\n:hidden:\n", *(f"{page_name(name)}\n" for name in map(_words, below)), "```")
    told = [
        f"# {called}",
        *(["".join(tree)] if below else []),
        *("\n\n".join((f"## {head}", *parts)) for head, parts in sections.items() if parts),
    ]
    return "\n\n".join(told) + "\n"


def _words(called: str) -> str:
    return called.removeprefix(f"{PROGRAM} ")


def _parameters(context: Context, kind: str) -> list[str]:
    """Return the arguments, or the options, of a command as items of a list of definitions."""
    parameters = (one for one in context.command.get_params(context) if one.param_type_name == kind)
    records = (parameter.get_help_record(context) for parameter in parameters)
    return [_term(f"`{record[0]}`", record[1]) for record in records if record is not None]


def _term(term: str, text: str) -> str:
    return f"{term}\n: {_escaped(' '.join(text.split())) or '…'}"


def _escaped(text: str) -> str:
    """Return a plain text of the help with what Markdown would read as markup escaped, but for code in backticks."""
    parts = text.split("`")
    return "`".join(part if place % 2 else part.translate(_MARKUP) for place, part in enumerate(parts))


_MARKUP = str.maketrans({letter: f"\\{letter}" for letter in "*_[]<>"})


def format_pages() -> dict[str, str]:
    """Return the pages of the documents that have a schema, by name: `format-spec`."""
    return {f"format-{name}": _format_page(name, about) for name, about in SCHEMAS.items()}


def _format_page(name: str, about: str) -> str:
    schema = json.loads(schema_text(name))
    root = schema["$ref"].rpartition("/")[2]
    definitions: dict[str, Schema] = {root: schema["$defs"][root], **schema["$defs"]}
    parts = [
        f"# {name}: {about}",
        f"From [{name}.schema.json](../../schemas/{name}.schema.json), which `provision schema {name}` prints.",
    ]
    for title, definition in definitions.items():
        parts += [f"## {title}", *_definition(definition)]
    return "\n\n".join(parts) + "\n"


def _definition(schema: Schema) -> Iterator[str]:
    """Yield the paragraphs about one type: what it is, and each of its keys."""
    if description := schema.get("description"):
        yield _escaped(description)
    if "properties" not in schema:
        yield f"{_type(schema)[:1].upper()}{_type(schema)[1:]}."
        return
    required = set(schema.get("required", ()))
    for key, value in schema["properties"].items():
        yield f"`{key}`\n: {_key(value, is_required=key in required)}"
    if isinstance(others := schema.get("additionalProperties"), dict):
        yield f"any other key\n: {_type(others)}"


def _key(schema: Schema, *, is_required: bool) -> str:
    """Return what a key holds, whether it must be there, and what holds where it is not."""
    default = schema.get("default")
    if is_required:
        presence = "required"
    elif default in (None, [], {}, ""):
        presence = "optional"
    else:
        presence = f"default `{json.dumps(default)}`"
    description = f" {_escaped(schema['description'])}" if "description" in schema else ""
    return f"{_type(schema)}; {presence}.{description}"


def _type(schema: Schema) -> str:
    """Return the values that a schema admits, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        kinds = [_type(one) for one in schema["anyOf"] if one != {"type": "null"}]
        return " or ".join(kinds) + _pattern(schema)
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" + (", each once" if schema.get("uniqueItems") else "")
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"mapping to {_type(values)}" if isinstance(values, dict) else "mapping"
    return _WORDS[schema["type"]] + _pattern(schema) + _bounds(schema)


_WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`", "null": "nothing"}


def _pattern(schema: Schema) -> str:
    return f" that matches `{schema['pattern']}`" if len(schema.get("pattern", "")) in range(1, 80) else ""


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return ""
    return f" from {low} on" if high is None else f" from {low} to {high}"


if __name__ == "__main__":
    write()
