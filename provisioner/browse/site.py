"""Generate the static site: one page, its style and scripts, and the data of the matrix. The site works from `file://`."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from provisioner.accelerators import ACCELERATORS
from provisioner.browse.grid import VENDORS, chosen_beside, decide, documented_kernels, empty_grid, joined
from provisioner.browse.macs import mac_grid
from provisioner.browse.rows import (
    citation_data,
    citing_index,
    gpu_data,
    image_data,
    named_rows,
    needs_data,
    package_data,
    release_data,
    rule_data,
    without_empty,
)
from provisioner.browse.summary import newest_first, summaries
from provisioner.components import COMPONENTS
from provisioner.host.facts import HOLDERS
from provisioner.host.profile import load_profile, profile_names
from provisioner.layers import LAYERS
from provisioner.matrix.lint import count as count_rows
from provisioner.platforms import LINUX_PLATFORMS
from provisioner.processes import forked
from provisioner.words.fault import layer_title

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.browse.grid import Grid, Verdicts
    from provisioner.browse.macs import MacGrid
    from provisioner.browse.rows import Data
    from provisioner.browse.summary import Summary
    from provisioner.matrix.model import Matrix

ASSETS = Path(__file__).parent / "assets"
TEMPLATE = "index.html.j2"
SCRIPTS = (
    *("dom.js", "verdicts.js", "evidence.js", "host.js", "map.js", "catalogue.js", "search.js"),
    *("platforms.js", "ranges.js", "files.js", "judge.js", "mine.js", "app.js"),
)
"""The scripts in order of their dependencies; plain scripts, because browsers load no modules from `file://`."""

PAGES = (
    ("host", "Host"),
    ("mine", "My files"),
    ("map", "Heat map"),
    ("rocm", "ROCm"),
    ("macs", "Macs"),
    ("components", "Components"),
    ("packages", "Packages"),
    ("rules", "Rules"),
    ("sources", "Sources"),
    ("notes", "Notes"),
)

PARSERS = "parsers.js"
"""The script with the parsers of TOML and YAML."""

VENDOR = ASSETS / "vendor"
VENDORED = (("smol-toml.cjs", "TOML"), ("js-yaml.min.js", "jsyaml"))
"""The files of `VENDOR` as npm has them, smol-toml 1.9.1 and js-yaml 4.1.1, and the name of each in the page."""

NOTES = ("failure", "variables", "override", "driver package", "limit")
"""The kinds of named matrix rows that the page `Notes` shows."""


def site_files(
    matrix: Matrix, *, docs: str = "", processes: int = 1, told: Callable[[int, int], None] | None = None
) -> dict[str, bytes]:
    """Return the content of every file of the site by name; the same matrix gives the same bytes.

    `docs` is the address of the documentation, to which the page links unless it is empty; `processes` and `told` as in
    `site_data`.
    """
    data = site_data(matrix, processes=processes, told=told)
    files = {name: (ASSETS / name).read_bytes() for name in ("site.css", *SCRIPTS)}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    files["data.js"] = f"window.MATRIX = {text};\n".encode()
    files[PARSERS] = _parsers().encode()
    files["index.html"] = _page(data, docs).encode()
    return dict(sorted(files.items()))


def _parsers() -> str:
    """Return the vendored modules as one script, each with its licence, because a page that is a file loads no modules."""
    parts = []
    for file, name in VENDORED:
        licence = (VENDOR / f"{file.partition('.')[0]}.LICENSE").read_text(encoding="utf-8").strip()
        code = (VENDOR / file).read_text(encoding="utf-8").strip()
        # A module of its own for each: smol-toml is CommonJS, js-yaml one script for every kind of loader.
        head = f"/* {file}\n\n{licence}\n*/\nconst {name} = (() => {{\nconst module = {{ exports: {{}} }};\n"
        parts.append(f"{head}((module, exports) => {{\n{code}\n}})(module, module.exports);\nreturn module.exports;\n}})();\n")
    return '"use strict";\n' + "".join(parts)


def _page(data: dict[str, object], docs: str) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    pages = [{"route": route, "title": title} for route, title in PAGES]
    template = environment.get_template(TEMPLATE)
    return template.render(
        pages=pages, docs=docs, scripts=("data.js", PARSERS, *SCRIPTS), about=data["about"], components=data["components"]
    )


class _Decided(NamedTuple):
    """What the complete search decides for the site: the grid, what lies beside each of its builds, and the grid of Macs."""

    grid: Grid
    beside: list[dict[str, str]]
    macs: Data


def _decided(matrix: Matrix, processes: int, told: Callable[[int, int], None] | None) -> _Decided:
    """Return all verdicts; those on GPUs of NVIDIA, most of the work, are decided in this process, which tells of it."""
    grid = empty_grid(matrix)
    nvidia, amd = VENDORS
    jobs: tuple[Callable[[], object], ...] = (
        lambda: decide(matrix, grid, amd),
        lambda: chosen_beside(matrix, grid.builds),
        lambda: _macs(mac_grid(matrix)),
    )
    done = count(1)
    of = len(LINUX_PLATFORMS) * sum(one.accelerator == nvidia for one in grid.devices) + len(jobs)

    def tell() -> None:
        if told is not None:
            told(next(done), of)

    def do(number: int) -> object:
        return jobs[number]()

    found = []
    with forked(do, min(processes - 1, len(jobs)), doing="decided verdicts of the site") as run:
        coming = run(range(len(jobs)))
        here = decide(matrix, grid, nvidia, told=tell)
        for one in coming:
            found.append(one)
            tell()
    there, beside, macs = cast("tuple[Verdicts, list[dict[str, str]], Data]", found)
    return _Decided(joined(grid, [here, there]), beside, macs)


def site_data(matrix: Matrix, *, processes: int = 1, told: Callable[[int, int], None] | None = None) -> Data:
    """Return the JSON document that the site shows: the rows of the matrix and all verdicts, the same for any `processes`.

    Up to so many processes decide at a time. `told` is called with the number of parts of the work that are done, and of all.
    Raises `UnavailableError` when a process is killed.
    """
    decided = _decided(matrix, processes, told)
    counts = count_rows(matrix)
    citing = citing_index(matrix)
    return {
        "about": {"rows": counts.rows, "measured": counts.measured, "digest": matrix.digest},
        "components": [_component(matrix, summary) for summary in summaries(matrix)],
        "rules": [rule_data(matrix, rule) for rule in matrix.rules],
        "citations": {key: {**citation_data(matrix.citations[key]), "rows": citing[key]} for key in sorted(matrix.citations)},
        "branches": [
            without_empty(
                {
                    "branch": branch.branch,
                    "native_cuda": str(branch.native_cuda),
                    "designation": branch.designation,
                    "end_of_life": branch.end_of_life,
                    "sources": branch.source,
                }
            )
            for branch in matrix.branches
        ],
        "packages": package_data(matrix),
        "gpus": [gpu_data(gpu) for gpu in matrix.gpus],
        "images": [image_data(image) for image in matrix.images],
        "notes": [{"kind": row.kind, **row.data} for row in named_rows(matrix) if row.kind in NOTES],
        "profiles": _profiles(matrix),
        "mine": {
            "shown": sorted(name for name, row in COMPONENTS.items() if row.is_shown_by_driver),
            "holders": HOLDERS,
            "layers": _layers(),
        },
        "macs": decided.macs,
        "grid": _grid(matrix, decided.grid, decided.beside),
    }


def _component(matrix: Matrix, summary: Summary) -> Data:
    component = matrix.components[summary.name]
    rows = (release_data(matrix, component, release) for release in newest_first(component))
    releases = tuple({key: value for key, value in row.items() if key != "component"} for row in rows)
    return without_empty(
        {
            "name": summary.name,
            "title": summary.title,
            "virtual": summary.is_virtual,
            "newest": summary.newest,
            "rows": summary.rows,
            "measured": summary.measured,
            "end_of_life": summary.end_of_life,
            "releases": releases,
        }
    )


def _profiles(matrix: Matrix) -> list[Data]:
    """Return the shipped host profiles whose GPU is in the matrix."""
    known = {gpu.name for gpu in matrix.gpus}
    found: list[Data] = []
    for name in profile_names():
        profile = load_profile(name)
        gpus = profile.host.gpus or ()
        if gpus and gpus[0].name in known:
            found.append({"name": name, "gpu": gpus[0].name, "platform": profile.host.platform, "is": profile.description})
    return found


def _layers() -> list[Data]:
    """Return the layers of a stack from the hardware up, each with its title by accelerator and its components."""
    titles = {row.name: {name: layer_title(row.name, name) for name in ACCELERATORS} for row in LAYERS}
    return [
        {
            "name": row.name,
            "titles": {name: f"{title[:1].upper()}{title[1:]}" for name, title in titles[row.name].items()},
            "components": row.components,
        }
        for row in LAYERS
    ]


def _macs(grid: MacGrid) -> Data:
    return {
        "macs": [{"platform": one.platform, "macos": one.macos, "gpu": one.gpu} for one in grid.macs],
        "builds": [
            {
                "component": name,
                "release": str(release.version),
                "build": build.name,
                "accelerator": build.accelerator,
                "compiled": build.compiled,
                "platforms": build.platforms,
                "needs": needs_data(build.requires),
            }
            for name, release, build in grid.builds
        ],
        "refusals": [[str(group) for group in groups] for groups in grid.refusals],
        "table": grid.table,
    }


def _grid(matrix: Matrix, grid: Grid, chosen: list[dict[str, str]]) -> Data:
    drivers = [str(driver) for driver in grid.drivers]
    series = documented_kernels(matrix, grid.drivers)
    kernel = matrix.components.get("kernel")
    return {
        "drivers": drivers,
        "kernels": [str(release.version) for release in newest_first(kernel)] if kernel is not None else [],
        "documented": series,
        "devices": [{"target": one.target, "kind": one.kind, "product": one.product} for one in grid.devices],
        "builds": [
            {
                "component": name,
                "release": str(release.version),
                "build": build.name,
                "platforms": build.platforms,
                "accelerator": build.accelerator,
                "beside": beside,
            }
            for (name, release, build), beside in zip(grid.builds, chosen, strict=True)
        ],
        "codes": [
            without_empty(
                {
                    "letter": code.letter,
                    "groups": [str(group) for group in code.groups],
                    "basis": code.basis,
                    "offered": code.is_offered or None,
                }
            )
            for code in grid.codes
        ],
        "rows": grid.rows,
        "table": grid.table,
    }
