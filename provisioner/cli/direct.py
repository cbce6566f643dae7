"""What a spec says of the files it names and of the indexes it uses, for the index client; mistakes with their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from provisioner.errors import InvalidDocumentError
from provisioner.index.direct_reference import DirectReferenceError, direct_reference, require_file, shown_url

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.cli.inputs import Inputs
    from provisioner.index.settings import IndexLocation


def require_files(inputs: Inputs) -> None:
    """Raise `InvalidDocumentError` with every requirement by URL or path that names no file that can be locked."""
    mistakes = []
    hints: dict[str, None] = {}
    for index, text in enumerate(inputs.spec.packages):
        requirement = Requirement(text)
        if requirement.url is None:
            continue
        try:
            _require_file(requirement, inputs.path.parent)
        except DirectReferenceError as error:
            mistakes.append(inputs.document.mistake(("packages", index), error.message))
            hints.update(dict.fromkeys(error.hints))
    if mistakes:
        raise InvalidDocumentError("spec", tuple(mistakes), hints=tuple(hints))


def _require_file(requirement: Requirement, folder: Path) -> None:
    assert requirement.url is not None
    if "@" in urlsplit(requirement.url).netloc:
        # The message does not repeat the URL: it would carry the login into logs.
        raise DirectReferenceError(
            f"the URL of `{requirement.name}` carries a login, and this file is shared",
            hints=("put the login of the host into ~/.netrc or the keyring",),
        )
    reference = direct_reference(requirement.name, requirement.url, folder)
    if reference.path:
        shown = f"{requirement.name} @ {shown_url(requirement.url)}"
        require_file(reference, shown, hints=("a relative path starts from the folder of the spec",))


def direct_urls(inputs: Inputs) -> tuple[str, ...]:
    """The addresses of all files the spec names."""
    return tuple(url for text in inputs.spec.packages if (url := Requirement(text).url) is not None)


def locations(inputs: Inputs) -> tuple[IndexLocation, ...]:
    """The indexes of the spec, each with the names that belong to it alone, in the spelling of indexes."""
    from provisioner.index.routing import normalized_pattern
    from provisioner.index.settings import IndexLocation

    return tuple(
        IndexLocation(name=one.name, url=one.url, packages=tuple(normalized_pattern(name) for name in one.packages))
        for one in inputs.spec.indexes
    )
