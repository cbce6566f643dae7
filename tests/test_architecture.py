"""The shape of the code, held by a test: layers, no circles, and homes of third-party packages.

The rules are functions of a source tree, so that they are themselves tested on trees that break them.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent / "provisioner"

BASE = frozenset(
    {
        "caches", "errors", "platforms", "accelerators", "components", "names", "outputs", "places", "repositories",
        "versions", "strict_model", "spellings", "setups", "document", "toml_document", "node_labels", "layers", "processes",
    }
)  # fmt: skip
INPUTS = frozenset({"matrix", "host", "spec", "index"})
REASONS = frozenset({"request", "grounds", "words"})
DOWN_TO_RENDER = BASE | INPUTS | REASONS | {"gate", "resolver", "lock", "render"}

MAY_IMPORT: dict[str, frozenset[str]] = {
    "__init__": frozenset({"api"}),
    "caches": frozenset(),
    "errors": frozenset(),
    "platforms": frozenset(),
    "accelerators": frozenset({"platforms"}),
    "components": frozenset({"platforms", "accelerators"}),
    "names": frozenset({"errors", "components"}),
    "outputs": frozenset({"errors", "names"}),
    "layers": frozenset({"accelerators", "components"}),
    "node_labels": frozenset({"accelerators", "components"}),
    "places": frozenset(),
    "processes": frozenset({"errors"}),
    "repositories": frozenset(),
    "versions": frozenset({"errors", "names"}),
    "strict_model": frozenset({"names"}),
    "spellings": frozenset({"strict_model"}),
    "setups": frozenset({"spellings", "strict_model"}),
    "document": BASE - {"toml_document"},
    "toml_document": BASE,
    "matrix": BASE,
    "host": BASE,
    "gate": BASE,
    "spec": BASE | {"gate"},
    "index": BASE,
    "request": BASE | {"host", "spec"},
    "grounds": BASE | {"gate", "host", "index", "request"},
    "words": BASE | {"gate", "grounds", "host", "index"},
    "resolver": BASE | INPUTS | REASONS | {"gate"},
    "lock": BASE | INPUTS | REASONS | {"gate", "resolver"},
    "render": BASE | {"gate", "lock"},
    "evidence": BASE,
    "validate": BASE | {"gate", "host", "lock", "render", "evidence", "words"},
    "measure": BASE | {"index"},
    "compare": BASE | {"matrix"},
    "curate": BASE | INPUTS | {"measure"},
    "browse": BASE | INPUTS | REASONS | {"resolver", "lock", "evidence"},
    "fleet": DOWN_TO_RENDER,
    "plan": DOWN_TO_RENDER,
    "doctor": DOWN_TO_RENDER | {"plan"},
    "diagnose": DOWN_TO_RENDER | {"plan"},
    "workflow": DOWN_TO_RENDER | {"curate", "evidence", "plan", "doctor", "diagnose"},
    "importers": BASE | {"gate", "grounds", "matrix", "resolver", "spec"},
    "schemas": BASE | {"host", "matrix", "spec", "evidence"},
    "cli": DOWN_TO_RENDER
    | {"importers", "schemas", "evidence", "validate", "fleet", "plan", "doctor", "diagnose"}
    | {"measure", "curate", "compare", "browse", "workflow"},
    "api": DOWN_TO_RENDER | {"doctor", "diagnose", "workflow"},
    "__main__": frozenset({"cli"}),
}
"""What each part of the package may import besides itself: the table of ARCHITECTURE.md."""

READING_ORDER: dict[str, tuple[str, ...]] = {
    "index": (
        *("address", "model", "notice", "markers", "activity", "read_limit", "settings", "routing", "once", "cache", "pruning"),
        *("http", "metadata", "pages", "find_links", "direct_reference", "direct", "dependency_confusion"),
        *("prefetch", "client", "download", "image_registry"),
    ),
    "resolver": (
        *("requirement", "stack"),
        *(
            "rules",
            "choices",
            "problem",
            "python",
            "search",
            "outcome",
            "attempts",
            "refuting",
            "answers",
            "prospects",
            "pythons",
            "explain",
            "series",
            "unobtainable",
            "published",
            "known_failures",
        ),
        *("refutation", "for_gpus", "joint", "why"),
    ),
}
"""The modules and packages inside a large part, in the order the data flows: each imports what stands before it."""

HOMES = {
    "ruamel": "document",
    "resolvelib": "resolver",
    "pysat": "resolver",
    "requests": "index",
    "defusedxml": "host",
    "keyring": "index",
    "docker": "validate",
    "junitparser": "evidence",
    "elftools": "measure",
    "jinja2": "browse",
    "typer": "cli",
    "rich": "cli",
}
"""Third-party packages that exactly one part of the package knows."""

PARAMETERS, POSITIONAL = 6, 3

Function = ast.FunctionDef | ast.AsyncFunctionDef


def violations(root: Path) -> list[str]:
    """Every rule broken under `root`, the directory of the package, one sentence each."""
    found = [
        f"{path.relative_to(root)}: {sentence}" for path in sorted(root.rglob("*.py")) for sentence in _in_file(path, root)
    ]
    return [*found, *_circles(root)]


def _circles(root: Path) -> Iterator[str]:
    """Modules that need each other, for types too: neither can be understood, or moved, without the other."""
    paths = {_dotted(path, root): path for path in sorted(root.rglob("*.py"))}
    above: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = [name for _, name in _imported(ast.parse(path.read_text(encoding="utf-8")))]
        found = {name if name in paths else name.rpartition(".")[0] for name in names}
        # A package's own file only hands names on.
        above[module] = {name for name in found & paths.keys() - {module} if paths[name].name != "__init__.py"}
    # Whoever needs nothing that is left is in no circle; what remains are circles, and those who need one.
    for graph in (above, _turned(above)):
        while free := [module for module, needed in graph.items() if not needed & graph.keys()]:
            for module in free:
                del graph[module]
        above = {module: above[module] for module in above if module in graph}
    if above:
        yield f"modules that need each other: {', '.join(above)}"


def _turned(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    return {module: {other for other in graph if module in graph[other]} for module in graph}


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(("provisioner", *parts)).removesuffix(".__init__")


def _in_file(path: Path, root: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    parts = path.relative_to(root).with_suffix("").parts
    yield from _wrong_imports(tree, parts)
    yield from _wrong_order(tree, parts)
    yield from _wrong_functions(tree, parts)


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and dotted name of everything imported; a relative import starts with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def _wrong_imports(tree: ast.AST, parts: tuple[str, ...]) -> Iterator[str]:
    layer = parts[0]
    if layer not in MAY_IMPORT:
        yield f"`{layer}` has no place in the layers; give it one in tests/test_architecture.py and ARCHITECTURE.md"
        return
    is_inside_containers = parts[:2] == ("validate", "checks")
    for line, name in _imported(tree):
        head, _, rest = name.partition(".")
        part = rest.partition(".")[0]
        if name.startswith("."):
            yield f"line {line}: relative import; write the full path"
        elif head == "provisioner" and is_inside_containers:
            yield f"line {line}: imports {name}; a check runs in containers that do not have this package"
        elif head == "provisioner" and part in MAY_IMPORT and part not in MAY_IMPORT[layer] | {layer}:
            yield f"line {line}: imports {name}; `{layer}` may not import `{part}`"
        elif HOMES.get(head, layer) != layer:
            yield f"line {line}: imports {head}; only `{HOMES[head]}` may"
        elif (
            name in {"importlib.import_module", "importlib"}
            and layer not in {"__init__", "cli", "render"}
            and not is_inside_containers
        ):
            yield f"line {line}: imports by name; only `cli`, `render` and the package itself may"


def _wrong_order(tree: ast.AST, parts: tuple[str, ...]) -> Iterator[str]:
    """What a module of a large part imports of the same part, and should not, for it comes later."""
    order = READING_ORDER.get(parts[0])
    if order is None or parts[1] == "__init__":
        return
    if parts[1] not in order:
        yield f"`{parts[1]}` has no place in the reading order of `{parts[0]}`; give it one in tests/test_architecture.py"
        return
    for line, name in _imported(tree):
        names = name.split(".")
        if names[:2] == ["provisioner", parts[0]] and order.index(names[2]) > order.index(parts[1]):
            yield f"line {line}: imports {name}, which comes later in READING_ORDER"


def _wrong_functions(tree: ast.AST, parts: tuple[str, ...]) -> Iterator[str]:
    for node, owner in _functions(tree, None):
        if parts == ("api",) or (parts[0] == "cli" and _is_command(node, parts)):
            continue  # its parameters are what a user may ask for
        positional = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        if owner is not None and positional and not _is_static(node):
            positional = positional[1:]
        count = len(positional) + len(node.args.kwonlyargs)
        if count > PARAMETERS:
            yield f"line {node.lineno}: `{node.name}` has {count} parameters; the ceiling is {PARAMETERS}"
        # A method of a derived class follows the signature of its base, and a private function has its callers beside it.
        if len(positional) > POSITIONAL and not node.name.startswith("_") and (owner is None or not owner.bases):
            found = f"`{node.name}` takes {len(positional)} positional parameters"
            yield f"line {node.lineno}: {found}; beyond {POSITIONAL} use names"


def _functions(node: ast.AST, owner: ast.ClassDef | None) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child, owner
            yield from _functions(child, None)
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, child)
        else:
            yield from _functions(child, owner)


def _is_static(node: Function) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list)


def _is_command(node: Function, parts: tuple[str, ...]) -> bool:
    if node.name == parts[-1]:
        return True
    calls = [decorator.func for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr in {"command", "callback"} for call in calls)


def plant(root: Path, **files: str) -> list[str]:
    """Write a source tree, `resolver__search="..."` being resolver/search.py, and return what is wrong with it."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return violations(root)


def test_the_package_keeps_its_shape() -> None:
    assert violations(ROOT) == []


def test_a_tree_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    assert (
        plant(
            tmp_path,
            errors="import dataclasses\n",
            document="import ruamel.yaml\nfrom provisioner.errors import ProvisionError\n",
            matrix__model="from provisioner import __version__\nfrom provisioner.matrix import load\n",
            resolver__search="import resolvelib\nfrom provisioner.index.model import File\n",
            cli__solve="import typer\nimport provisioner.validate.engine\nfrom importlib import import_module\n",
        )
        == []
    )


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "lock__write",
            "import provisioner.render.dockerfile\n",
            "lock/write.py: line 1: imports provisioner.render.dockerfile; `lock` may not import `render`",
        ),
        (
            "render__text",
            "from provisioner import resolver\n",
            "render/text.py: line 1: imports provisioner.resolver; `render` may not import `resolver`",
        ),
        (
            "host__probe",
            "def probe():\n    from provisioner.matrix.model import Matrix\n",
            "host/probe.py: line 2: imports provisioner.matrix.model.Matrix; `host` may not import `matrix`",
        ),
        (
            "errors",
            "from provisioner.names import nearest\n",
            "errors.py: line 1: imports provisioner.names.nearest; `errors` may not import `names`",
        ),
        ("spec__load", "from . import model\n", "spec/load.py: line 1: relative import; write the full path"),
        ("spec__load", "from .model import Spec\n", "spec/load.py: line 1: relative import; write the full path"),
        ("fleet__cover", "import docker.errors\n", "fleet/cover.py: line 1: imports docker; only `validate` may"),
        ("lock__download", "from requests import get\n", "lock/download.py: line 1: imports requests; only `index` may"),
        (
            "lock__file",
            "if TYPE_CHECKING:\n    from provisioner.cli.app import main\n",
            "lock/file.py: line 2: imports provisioner.cli.app.main; `lock` may not import `cli`",
        ),
        (
            "resolver__search",
            "from importlib import import_module\n",
            "resolver/search.py: line 1: imports by name; only `cli`, `render` and the package itself may",
        ),
        (
            "validate__checks__torch_version",
            "from provisioner.errors import ProvisionError\n",
            (
                "validate/checks/torch_version.py: line 1: imports provisioner.errors.ProvisionError;"
                " a check runs in containers that do not have this package"
            ),
        ),
        (
            "utilities",
            "",
            (
                "utilities.py: `utilities` has no place in the layers;"
                " give it one in tests/test_architecture.py and ARCHITECTURE.md"
            ),
        ),
        (
            "resolver__rules__needs",
            "if TYPE_CHECKING:\n    from provisioner.resolver.problem import Problem\n",
            (
                "resolver/rules/needs.py: line 2: imports provisioner.resolver.problem.Problem, "
                "which comes later in READING_ORDER"
            ),
        ),
        (
            "index__helpers",
            "",
            (
                "index/helpers.py: `helpers` has no place in the reading order of `index`;"
                " give it one in tests/test_architecture.py"
            ),
        ),
        (
            "errors",
            "def wide(a, b, *, c, d, e, f, g): ...\n",
            "errors.py: line 1: `wide` has 7 parameters; the ceiling is 6",
        ),
        (
            "errors",
            "class Shape:\n    def area(self, a, b, c, d): ...\n",
            "errors.py: line 2: `area` takes 4 positional parameters; beyond 3 use names",
        ),
        (
            "cli__solve",
            "def gather(a, b, c, d): ...\n",
            "cli/solve.py: line 1: `gather` takes 4 positional parameters; beyond 3 use names",
        ),
    ],
)
def test_a_broken_rule_is_named_with_its_line(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    assert plant(tmp_path, **{name: text}) == [sentence]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("errors", "class Shape:\n    def area(self, a, b, c, *, d, e, f): ...\n"),
        ("errors", "class Shape:\n    @staticmethod\n    def area(a, b, c): ...\n"),
        ("resolver__search", "class Search(Base):\n    def prefer(self, a, b, c, d, e): ...\n"),
        ("cli__solve", "def solve(a, b, c, d, e, f, g): ...\n"),
        ("cli__matrix", "@matrix.command('list')\ndef list_all(a, b, c, d, e, f, g): ...\n"),
    ],
)
def test_as_many_parameters_as_may_be_are_allowed(tmp_path: Path, name: str, text: str) -> None:
    assert plant(tmp_path, **{name: text}) == []


def test_modules_that_need_each_other_are_named(tmp_path: Path) -> None:
    found = plant(
        tmp_path,
        lock__a="from provisioner.lock.b import B\n",
        lock__b="def b():\n    import provisioner.lock.c\n",
        lock__c="if TYPE_CHECKING:\n    from provisioner.lock.a import A\n",
        lock__d="from provisioner.lock import a, e\n",
        lock__e="",
    )
    assert found == ["modules that need each other: provisioner.lock.a, provisioner.lock.b, provisioner.lock.c"]


def test_every_part_imports_only_parts_that_never_import_it_back() -> None:
    for part, below in MAY_IMPORT.items():
        for other in below - {part}:
            assert part not in MAY_IMPORT[other], f"`{part}` and `{other}` may import each other"
