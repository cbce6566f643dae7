"""Semantic faults in real locks: one value or entry is taken out, exchanged or altered, and the digest is made again.

A *place* is the path of a key without the numbers of its entries, such as `packages.wheels.url`; a *kind* of fault is a place
and what is done to it. Every place of every lock is tried, so a new key of the format is seeded without a line here.
"""

from __future__ import annotations

import copy
import pickle
import tomllib
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from msgspec import Struct

from provisioner.lock.format.file import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Key = str | int
    Table = dict[str, Any]

FOLDER = Path(__file__).parents[1] / "dockerfiles"
LOCKS = tuple(sorted(FOLDER.glob("*/pylock.*.toml")))

OWN = ("tool", "provision")
_NOT_SEEDED = {"digest", "schema-version"}
"""Keys of `[tool.provision]` whose alteration is the edit itself, and the version of the format."""


class Fault(Struct, frozen=True, kw_only=True):
    """One changed lock: the kind of the fault, where it was put, and the text of the lock file."""

    kind: str
    path: str
    text: str


def without_fault(lock: Path, matrix_digest: str) -> str:
    """Return the text of a lock as if it had been made from the matrix of this digest, whose reasons it must have then."""
    table = tomllib.loads(lock.read_text(encoding="utf-8"))
    table["tool"]["provision"]["matrix-digest"] = matrix_digest
    return _text(table)


def faults(text: str, is_wanted: Callable[[str], bool] = bool) -> Iterator[Fault]:
    """Yield one fault of each wanted kind that can be put into a lock; the last entry of a place is the one that is changed."""
    table = tomllib.loads(text)
    whole = pickle.dumps(table)
    for place, paths in _places(table).items():
        for name, change in _CHANGES.items():
            kind = f"{place}: {name}"
            for path in reversed(paths) if is_wanted(kind) else ():
                others = [value for other in paths if (value := _at(table, other)) != _at(table, path)]
                written = pickle.loads(whole)
                if change(_at(written, path[:-1]), path[-1], others) and written != table:
                    yield Fault(kind=kind, path=".".join(map(str, path)), text=_text(written))
                    break
    for name, rewrite in _JOINED.items():
        written = pickle.loads(whole)
        if is_wanted(name) and rewrite(written):
            yield Fault(kind=name, path="", text=_text(written))


def _text(table: Table) -> str:
    table["tool"]["provision"]["digest"] = digest_of(table)
    return tomli_w.dumps(table)


def _places(table: Table) -> dict[str, list[tuple[Key, ...]]]:
    """Return the path of every value, list and table by its place."""
    found: dict[str, list[tuple[Key, ...]]] = defaultdict(list)

    def visit(value: object, path: tuple[Key, ...]) -> None:
        if path and path[-1] not in _NOT_SEEDED and path not in {("tool",), OWN}:
            found[".".join("[]" if isinstance(part, int) else part for part in path).replace(".[]", "[]")].append(path)
        if isinstance(value, dict):
            for key, below in value.items():
                visit(below, (*path, key))
        elif isinstance(value, list):
            for index, below in enumerate(value):
                visit(below, (*path, index))

    visit(table, ())
    return found


def _at(table: Table, path: tuple[Key, ...]) -> Any:  # noqa: ANN401 - TOML holds anything
    value: Any = table
    for part in path:
        value = value[part]
    return value


def _take_out(holder: Any, key: Key, others: list[Any]) -> bool:  # noqa: ANN401 - TOML holds anything
    del others
    del holder[key]
    return True


def _exchange(holder: Any, key: Key, others: list[Any]) -> bool:  # noqa: ANN401 - TOML holds anything
    """Put the value of another entry there."""
    if not others:
        return False
    holder[key] = copy.deepcopy(others[0])
    return True


def _double(holder: Any, key: Key, others: list[Any]) -> bool:  # noqa: ANN401 - TOML holds anything
    """Add the value of another entry to a list, or the entry itself once more."""
    if not isinstance(key, int) or not isinstance(holder[key], (dict, str)):
        return False
    missing = [other for other in others if other not in holder]
    holder.append(copy.deepcopy(missing[0] if missing else holder[key]))
    return True


def _alter(holder: Any, key: Key, others: list[Any]) -> bool:  # noqa: ANN401 - TOML holds anything
    """Put a value of the same shape there that is in no lock."""
    del others
    match holder[key]:
        case str() as text:
            holder[key] = _altered(text)
        case datetime() as moment:
            holder[key] = moment - timedelta(days=400)
        case int() as number:
            holder[key] = number + 1
        case _:
            return False
    return True


_FOLLOWING = {"9": "0", "f": "a", "z": "a", "Z": "A"}
"""What follows the last digit of a kind; a hash stays hexadecimal."""


def _altered(text: str) -> str:
    """Return a text with its last digit, or else its last letter, replaced by the next one."""
    for is_one in (str.isdigit, str.isalpha):
        for at in range(len(text) - 1, -1, -1):
            if text[at].isascii() and is_one(text[at]):
                following = (
                    "0" if text[at] in "9zZf" and text[at].isdigit() else "a" if text[at] in "zZf" else chr(ord(text[at]) + 1)
                )
                return f"{text[:at]}{following}{text[at + 1 :]}"
    return f"{text}1"


_CHANGES: dict[str, Callable[[Any, Key, list[Any]], bool]] = {
    "taken out": _take_out,
    "exchanged": _exchange,
    "added": _double,
    "altered": _alter,
}


def _wheels(table: Table) -> list[Table]:
    return [wheel for package in table["packages"] for wheel in package.get("wheels", ())]


def _stack(table: Table) -> Table:
    stack: Table = table["tool"]["provision"]["platforms"][0]
    return stack


def _url_of_other_wheel(table: Table) -> bool:
    first, second = _wheels(table)[:2]
    first["url"] = second["url"]
    return True


def _file_of_other_project(table: Table) -> bool:
    """The whole file, name, address and hash, of another project under the name of this one."""
    first, second = [package for package in table["packages"] if package.get("wheels")][:2]
    first["wheels"] = copy.deepcopy(second["wheels"])
    return True


def _login(value: str) -> str:
    return value.replace("https://", "https://user:secret@", 1)


def _login_in_installer(table: Table) -> bool:
    installer = _stack(table).get("installer")
    if installer:
        installer["file"]["url"] = _login(installer["file"]["url"])
    return bool(installer)


def _login_in_index(table: Table) -> bool:
    package = next(one for one in table["packages"] if one.get("index"))
    package["index"] = _login(package["index"])
    return True


def _login_in_wheel(table: Table) -> bool:
    wheel = _wheels(table)[-1]
    wheel["url"] = _login(wheel["url"])
    return True


def _token_in_wheel(table: Table) -> bool:
    """A login without a password, as tokens of indexes are written."""
    wheel = _wheels(table)[-1]
    wheel["url"] = wheel["url"].replace("https://", "https://ghp_0123456789abcdefghij@", 1)
    return True


def _component_without_pins(table: Table) -> bool:
    """A component that is in no other place of the stack either: neither in its pins nor as the reason of others."""
    stack = _stack(table)
    name = next((one for one in ("nccl", "cudnn", "cusparselt", "nvshmem", "glibc") if one in stack["stack"]), "")
    if not name:
        return False
    del stack["stack"][name]
    stack["pins"] = [pin for pin in stack["pins"] if pin["component"] != name]
    for holder in (*stack["pins"], *stack.get("host-reasons", ())):
        holder["reasons"] = [reason for reason in holder.get("reasons", ()) if reason["component"] != name]
    return True


def _other_image(table: Table) -> bool:
    """Another base image, in every place that names it."""
    stack = _stack(table)
    before, after = stack["image"]["reference"], "debian:trixie-slim"
    stack["image"]["reference"] = stack["stack"]["image"] = after
    for pin in stack["pins"]:
        pin["version"] = pin["version"].replace(before, after)
    return True


def _digest_of_image(table: Table) -> bool:
    """A digest of nobody's image in a lock without one."""
    image = _stack(table)["image"]
    is_new = not image.get("digest")
    image["digest"] = f"sha256:{'0' * 64}"
    return is_new


def _python_of_image(table: Table) -> bool:
    """What the image is said to hold, so that no other Python is installed in it."""
    _stack(table)["image"]["python"] = "3.9"
    return True


def _installer_of_other_project(table: Table) -> bool:
    """A wheel of the packages, coherent in itself, in place of the program that installs them."""
    stack = _stack(table)
    package = next(one for one in table["packages"] if one.get("wheels"))
    stack["installer"] = {"name": package["name"], "version": package["version"], "file": copy.deepcopy(package["wheels"][0])}
    return True


def _one_more_platform(table: Table) -> bool:
    """The stack and every file of a platform for another one, too, which the spec does not name."""
    platforms = table["tool"]["provision"]["platforms"]
    if len(platforms) > 1:
        return False
    other = {**copy.deepcopy(platforms[0]), "platform": "linux/arm64"}
    platforms.append(other)
    table["environments"].append('sys_platform == "linux" and platform_machine == "aarch64"')
    for package in table["packages"]:
        package["tool"]["provision"]["platforms"].append("linux/arm64")
        for wheel in package.get("wheels", ()):
            name = wheel["name"].rsplit("-", 1)[0]
            wheel["name"] = f"{name}-any.whl"
            wheel["url"] = f"{wheel['url'].rsplit('/', 1)[0]}/{wheel['name']}"
    return True


def _marker_of_nobody(table: Table) -> bool:
    table["packages"][-1]["marker"] = 'sys_platform == "win32"'
    return True


def _marker_of_another_python(table: Table) -> bool:
    table["packages"][-1]["marker"] = 'python_version < "3.9"'
    return True


def _extra_marker(table: Table) -> bool:
    table["packages"][-1]["marker"] = "'all' in extras"
    return True


def _relaxed_driver(table: Table) -> bool:
    """Any driver will do, in the requirement and in the gate that says the same."""
    stack = _stack(table)
    if "driver" not in stack.get("host-requirements", {}):
        return False
    stack["host-requirements"]["driver"] = ">=418.39"
    stack["require-cuda"] = stack.get("require-cuda", "").replace(">=580.65.06", ">=418.39").replace(">=525.60.13", ">=418.39")
    return True


def _without_host_requirements(table: Table) -> bool:
    stack = _stack(table)
    taken = [stack.pop(key, None) for key in ("host-requirements", "host-reasons", "require-cuda")]
    return any(taken)


def _without_reasons(table: Table) -> bool:
    for pin in _stack(table)["pins"]:
        pin.pop("reasons", None)
    return True


def _two_versions_of_a_package(table: Table) -> bool:
    package = copy.deepcopy(table["packages"][-1])
    package["version"] = _altered(package["version"])
    table["packages"].append(package)
    return True


def _package_with_what_requires_it(table: Table) -> bool:
    """The first package that the spec does not name, out of the list and out of every list of requirements."""
    asked = {key.removeprefix("packages.") for key in table["tool"]["provision"].get("asked", {})}
    name = next(one["name"] for one in table["packages"] if one["name"] not in asked)
    table["packages"] = [one for one in table["packages"] if one["name"] != name]
    for package in table["packages"]:
        package["dependencies"] = [one for one in package.get("dependencies", ()) if one["name"] != name]
        own = package["tool"]["provision"]
        own["requires"] = [text for text in own.get("requires", ()) if not text.replace("_", "-").startswith(name)]
    return True


_JOINED: dict[str, Callable[[Table], bool]] = {
    function.__name__.strip("_").replace("_", " "): function
    for function in (
        *(_url_of_other_wheel, _file_of_other_project, _login_in_installer, _login_in_index, _login_in_wheel, _token_in_wheel),
        *(_component_without_pins, _other_image, _digest_of_image, _python_of_image, _installer_of_other_project),
        *(_one_more_platform, _marker_of_nobody, _marker_of_another_python, _extra_marker, _relaxed_driver),
        *(_without_host_requirements, _without_reasons, _two_versions_of_a_package, _package_with_what_requires_it),
    )
}
