"""Print the answers of `provision matrix show`, given as plain data, as text and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.accelerators import COMPILED_KEYS, RUNTIMES
from provisioner.cli.display import data, table, talk
from provisioner.components import DRIVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

Answer = dict[str, Any]
MOST_VERSIONS = 6
"""The most versions that are listed one by one; of a longer list only the first and the last are shown."""


def tell(answer: Answer) -> None:
    """Print one answer, in the form of its `kind`: `release`, `stacks` or `row`."""
    {"release": _release, "stacks": _stacks, "row": _row}[answer["kind"]](answer)


def _release(answer: Answer) -> None:
    for release in answer["releases"]:
        data(f"{answer['title']}: {release['component']} {release['version']}")
        data("\n".join(f"  {name}: {text}" for name, text in _release_lines(release)) or "  nothing more is stated")
    _rules(answer["rules"])
    rows = [row for one in answer["with"] for row in _rows_beside(one)]
    if rows:
        data("\nwhat is stated to go with it")
        table(("component", "releases", "how many"), rows)
    if answer["images"]:
        data("\nbase images")
        data("\n".join(f"  {image}" for image in dict.fromkeys(image["reference"] for image in answer["images"])))
    _sources(answer["citations"], {key for one in (*answer["releases"], *answer["rules"]) for key in _keys(one)})
    if "stacks" in answer:
        data("")
        _stacks(answer["stacks"])


def _rows_beside(one: Answer) -> Iterator[tuple[str, str, str]]:
    """Yield a table row for each way (`basis`) in which releases of one component are compatible with the queried release.

    The basis is how a driver runs a CUDA release; all releases of other components share one row without a basis.
    """
    ways: dict[str, list[Answer]] = {}
    for release in one["releases"]:
        ways.setdefault(release.get("basis", ""), []).append(release)
    for way, releases in ways.items():
        name = f"{one['component']}, {way}" if way else one["component"]
        yield name, _versions(releases), f"{len(releases)} of {one['of']}"


def _release_lines(release: Answer) -> list[tuple[str, str]]:
    texts = ("released", "end_of_life", "prerelease", "ptx_isa")
    lines = [(name.replace("_", " "), release[name]) for name in texts if name in release]
    lines.extend((f"needs {name}", text) for name, text in release.get("needs", {}).items())
    driver = release.get("driver", {})
    if "minor_version" in driver:
        lines.append(("driver, minor-version compatibility", f">={driver['minor_version']}"))
    if "toolkit" in driver:
        lines.append(("driver, beside the toolkit", f">={driver['toolkit']}"))
    if "forward_compat" in driver:
        lines.append(("driver branches, forward compatibility (data-centre GPUs)", ", ".join(driver["forward_compat"])))
    builds = [(build["name"], _build(build)) for build in release.get("builds", ())]
    lines.extend((f"build {name}", text) for name, text in builds if text)
    plain = ", ".join(name for name, text in builds if not text)
    lines.extend([("builds", plain)] if plain else [])
    lines.append(("source", ", ".join(release.get("sources", ())) or "of each build"))
    if "place" in release:
        lines.append(("stands in", release["place"]))
    return lines


def _build(build: Answer) -> str:
    parts = [", ".join(build.get("platforms", ()))]
    parts.extend(f"{name} {text}" for name, text in build.get("needs", {}).items())
    targets = " ".join(target for key in COMPILED_KEYS for target in build.get(key, ()))
    if targets:
        parts.append(f"compiled for {targets}")
    return "; ".join(filter(None, parts))


def _versions(releases: list[Answer]) -> str:
    spelled = [_spelled(release) for release in releases]
    flat = [text for texts in spelled for text in texts]
    if len(flat) <= MOST_VERSIONS:
        return ", ".join(flat)
    return f"{flat[0]} … {flat[-1]}"


def _spelled(release: Answer) -> list[str]:
    return [f"{release['version']}+{name}" for name in dict.fromkeys(release.get("builds", ()))] or [str(release["version"])]


def _rules(rules: list[Answer]) -> None:
    if rules:
        data("\nrules")
        for rule in rules:
            data(f"  {rule['name']}: {_says(rule)}")


def _says(rule: Answer) -> str:
    when = " and ".join(f"{name} {text}" for name, text in rule["when"].items())
    on = " and ".join(f"{name} {text}" for name, text in rule.get("on", {}).items())
    require = " and ".join(f"{name} {text}" for name, text in rule.get("require", {}).items())
    return f"{when}{f', on {on},' if on else ''} needs {require}: {rule['because']}"


def _keys(row: Answer) -> list[str]:
    return [*row.get("sources", ()), *(key for build in row.get("builds", ()) for key in build.get("sources", ()))]


def _sources(citations: Answer, wanted: set[str]) -> None:
    shown = {key: one for key, one in citations.items() if key in wanted}
    if shown:
        data("\nsources")
    for key, one in shown.items():
        where = f", {one['where']}" if "where" in one else ""
        read = f", read {one['read']}" if "read" in one else ""
        data(f"  {key}{' (measured)' if one['measured'] else ''}: {one['title']}{where}{read}")
        if "url" in one:
            data(f"    {one['url']}")


def _stacks(answer: Answer) -> None:
    data("on a host with " + ", ".join(f"{name} {text}" for name, text in answer["host"].items()))
    runs = answer["runs"]
    if runs:
        data("")
        columns = ("framework", "build", *RUNTIMES, "basis", "driver", "kernel", "python")
        table(columns, [_stack_row(one) for one in runs])
    else:
        data("\nno stack runs there")
    for one in answer["refused"]:
        data(f"\n{one['component']} {_span(one['releases'])} cannot run there: {', '.join(one['rules'])}")
        for member in one["members"]:
            where = f"  ({member['where']})" if "where" in member and member["kind"] == "rule" else ""
            data(f"  {member['text']}{where}")
    for note in answer["unverified"]:
        talk(f"unverified: {note}")
    rules = {key for rule in answer["rules"] for key in rule.get("sources", ())}
    _sources(answer["citations"], rules)


def _stack_row(one: Answer) -> tuple[str, ...]:
    stack = one["stack"]
    driver = next((stack[name] for name in DRIVERS if name in stack), "")
    return (
        f"{one['component']} {one['release']}",
        one.get("build", ""),
        *(stack.get(name, "") for name in RUNTIMES),
        one.get("basis", ""),
        driver,
        *(stack.get(name, "") for name in ("kernel", "python")),
    )


def _span(releases: list[str]) -> str:
    return (
        ", ".join(releases) if len(releases) <= MOST_VERSIONS else f"{releases[-1]} … {releases[0]} ({len(releases)} releases)"
    )


def _row(answer: Answer) -> None:
    data(f"{answer['row']} {answer['name']}")
    says = answer["says"]
    if answer["row"] == "rule":
        data(f"  {_says(says)}")
        data(f"  stands in {says['place']}" if "place" in says else "")
    else:
        for name, value in says.items():
            if name not in {"name", "key", "sources"}:
                data("\n".join(_field(name.replace("_", " "), value)))
    _sources(answer["citations"], set(answer["citations"]))


def _field(name: str, value: object) -> list[str]:
    if isinstance(value, dict):
        return [f"  {name}:", *(f"    {key}: {text}" for key, text in value.items())]
    if isinstance(value, tuple | list) and len(value) > MOST_VERSIONS:
        return [f"  {name}:", *(f"    {text}" for text in value)]
    if isinstance(value, tuple | list):
        return [f"  {name}: {', '.join(str(text) for text in value)}"]
    return [f"  {name}: {value}"]
