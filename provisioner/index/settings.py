"""The settings of an index client, and how they are read from pip's configuration."""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.caches import cache_directory
from provisioner.errors import ProvisionError
from provisioner.index.address import as_url, origin, project_url, require_clear_login
from provisioner.index.read_limit import LIMIT, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from configparser import RawConfigParser

PYPI = "https://pypi.org/simple"
PYTORCH = "https://download.pytorch.org/whl/{variant}"
"""The URL template of PyTorch's indexes, one per build variant (`cu126`). Source: pytorch.org, "Previous versions"."""

JETSON = "https://pypi.jetson-ai-lab.io/{variant}"
"""The URL template of the indexes of NVIDIA's Jetson AI Lab, one for each JetPack and CUDA (`jp6/cu126`).

Source: dusty-nv/jetson-containers, README.md.
"""
JETPACK = "https://developer.download.nvidia.com/compute/redist/jp/{variant}/"
"""The URL template of NVIDIA's pages of wheels, one for each JetPack and framework (`v511/pytorch`).

Source: NVIDIA, "Installing PyTorch for Jetson Platform" and "Installing TensorFlow for Jetson Platform".
"""

KEYRING_PROVIDERS = ("auto", "disabled", "import", "subprocess")

_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Environment variables that name a CA bundle when pip's `cert` is not set; the first that is set is used."""

_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})

_LOGIN_VARIABLE = re.compile(r"PROVISION_INDEX_(\w+)_(USERNAME|PASSWORD)")

Login = tuple[str, str]
"""A user name and a password."""


class InstallerConfigurationError(ProvisionError):
    """The installer's configuration cannot be read."""

    code = "installer-configuration"
    exit_code = 2


class IndexLocation(Struct, frozen=True, kw_only=True):
    """One package index, or a template: a URL with `{variant}` that gives one index for each build variant (`pytorch-cu126`).

    `packages` are normalized project names or globs (`nvidia-*`) that are pinned to this index; if there are any, the index is
    requested for no other project. With `is_page`, the URL is that of one page, or folder, which lists files of any project, as
    pip's find-links does.
    """

    name: str
    url: str
    packages: tuple[str, ...] = ()
    is_page: bool = False

    def page_url(self, name: str) -> str:
        """Return the URL of the page that lists the files of a project, whose name must be normalized."""
        return self.url if self.is_page else project_url(self.url, name)

    def pins(self, name: str) -> bool:
        """Return whether a project is pinned to this index, so that it is taken from no other index."""
        return any(fnmatchcase(name, pattern) for pattern in self.packages)

    @property
    def is_template(self) -> bool:
        """Whether the URL has a `{variant}` to fill in."""
        return "{variant}" in self.url


class IndexSettings(Struct, frozen=True, kw_only=True):
    """The indexes in which packages are looked up, and how they are requested; `routing` decides their order.

    `exclude_newer` leaves out files uploaded after a day (`2026-09-01`, UTC, that day still included) or from an RFC 3339 time
    on; None sets no limit. With `accepts_undated`, files without an upload time are accepted nevertheless. `fresh_seconds` is
    how long a page without Cache-Control is used without a new request. `timeout` is in seconds. `prerelease_names` are the
    projects whose pre-releases are allowed although `allow_prerelease` is False, because their requirement names one.
    `main_index` is the name of pip's `index-url`, "" when the indexes are not from pip's configuration. `pytorch_index` is the
    URL template of PyTorch's builds, used when no index named `pytorch` is configured; "" when the spec lists its indexes.
    `allow_build` permits building a source distribution, in isolation, to find its requirements. `direct_urls` are the URLs of
    direct references as written; relative ones are resolved against `direct_folder`. `logins` are the credentials from the
    variables `PROVISION_INDEX_<NAME>_USERNAME` and `_PASSWORD`, as `logins_from` returns them. `keyring_provider` is pip's
    option: `auto`, `disabled`, `import` or `subprocess`. `ca_bundle_from` and `client_certificate_from` name the setting or
    variable that configures these files, for error messages. `read_limit` is the number of bytes that one run may read.
    """

    indexes: tuple[IndexLocation, ...] = (IndexLocation(name="pypi", url=PYPI),)
    main_index: str = ""
    pytorch_index: str = PYTORCH
    find_links: tuple[str, ...] = ()
    ca_bundle: str = ""
    ca_bundle_from: str = ""
    client_certificate: str = ""
    client_certificate_from: str = ""
    proxy: str = ""
    trusted_hosts: tuple[str, ...] = ()
    timeout: float = 15.0
    retries: int = 3
    offline: bool = False
    exclude_newer: str | None = None
    accepts_undated: bool = False
    allow_prerelease: bool = False
    prerelease_names: frozenset[str] = frozenset()
    allow_sdist: bool = False
    allow_build: bool = False
    direct_urls: tuple[str, ...] = ()
    direct_folder: Path = Path()
    logins: Mapping[str, Login] = field(default_factory=dict)
    keyring_provider: str = "auto"
    fresh_seconds: int = 600
    read_limit: int = LIMIT
    cache_directory: Path = field(default_factory=cache_directory)

    def __repr__(self) -> str:
        # Addresses and logins may hold secrets, and the representation of a value ends up in logs.
        return f"{type(self).__name__}(indexes={[one.name for one in self.indexes]})"


def variable_prefix(name: str) -> str:
    """Return the prefix of an index's environment variables: `PROVISION_INDEX_MY_INDEX` for `my-index`."""
    return f"PROVISION_INDEX_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def logins_from(environ: Mapping[str, str]) -> dict[str, Login]:
    """Return the logins in `PROVISION_INDEX_<NAME>_USERNAME` and `_PASSWORD`, keyed by `PROVISION_INDEX_<NAME>`.

    These keys are those that `variable_prefix` returns for an index. A missing user name or password is "".
    """
    found: dict[str, dict[str, str]] = {}
    for key, value in environ.items():
        match = _LOGIN_VARIABLE.fullmatch(key)
        if match is not None and value:
            found.setdefault(f"PROVISION_INDEX_{match[1]}", {})[match[2]] = value
    return {prefix: (parts.get("USERNAME", ""), parts.get("PASSWORD", "")) for prefix, parts in found.items()}


def settings_from_pip(environ: Mapping[str, str], lines: Iterable[tuple[str, str]] = ()) -> IndexSettings:
    """Read pip's configuration: its files (global, user, site, PIP_CONFIG_FILE), then the `PIP_*` environment variables.

    `lines` are options of requirement files with their values: as in pip, an `index-url` replaces the configured one, and each
    `extra-index-url` and `find-links` is added. A later source overrides an earlier one, and `[install]` overrides `[global]`.
    Raises `InstallerConfigurationError` when a file or value is invalid, and `AddressError` for an ambiguous or unsupported
    URL. Source: pip documentation, "Configuration", read 2026-11-21.
    """
    options = _options(environ)
    for option, value in lines:
        before = "" if option == "index-url" else options.get(option, "")
        options[option] = f"{before} {value}".strip()
    for option in ("index-url", "extra-index-url", "find-links", "proxy"):
        for address in options.get(option, "").split():
            require_clear_login(address, f"pip's `{option}`")
    indexes = () if _is_true(options.get("no-index", "")) else _indexes(options)
    bundle, bundle_from = _bundle(options, environ)
    return IndexSettings(
        indexes=indexes,
        main_index=indexes[0].name if indexes else "",
        find_links=tuple(as_url(place) for place in options.get("find-links", "").split()),
        ca_bundle=bundle,
        ca_bundle_from=bundle_from,
        client_certificate=options.get("client-cert", ""),
        client_certificate_from=_setting("client-cert", environ),
        proxy=options.get("proxy", ""),
        trusted_hosts=tuple(options.get("trusted-host", "").split()),
        timeout=_number(options, "timeout", 15.0),
        retries=int(_number(options, "retries", 3)),
        allow_prerelease=_is_true(options.get("pre", "")),
        logins=logins_from(environ),
        keyring_provider=_keyring_provider(options),
        read_limit=_read_limit(environ.get(VARIABLE, "")),
    )


def named_locations(urls: Iterable[str]) -> tuple[IndexLocation, ...]:
    """Return an index for each URL, with a unique name that reveals no path: `pypi`, `pytorch-cu126`, `main`, `extra-1`."""
    locations: list[IndexLocation] = []
    for position, url in enumerate(urls):
        name = _known_name(url)
        if not name or any(one.name == name for one in locations):  # the nightly builds of PyTorch beside the stable ones
            name = f"extra-{position}" if position else "main"
        locations.append(IndexLocation(name=name, url=url))
    return tuple(locations)


def _known_name(url: str) -> str:
    host = origin(url)[1]
    if host == "pypi.org":
        return "pypi"
    if host == "download.pytorch.org":
        variant = url.rstrip("/").rpartition("/")[2]
        return "pytorch" if variant == "whl" else f"pytorch-{variant}"
    return ""


def _indexes(options: Mapping[str, str]) -> tuple[IndexLocation, ...]:
    urls = [options.get("index-url", PYPI), *options.get("extra-index-url", "").split()]
    apart: dict[str, str] = {}
    for url in urls:
        apart.setdefault(url.rstrip("/"), url)
    return named_locations(as_url(url) for url in apart.values())


def _bundle(options: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the path of the configured CA bundle and the setting that names it; two empty strings when none is configured."""
    if options.get("cert"):
        return options["cert"], _setting("cert", environ)
    return next(((environ[name], name) for name in _BUNDLES if environ.get(name)), ("", ""))


def _setting(option: str, environ: Mapping[str, str]) -> str:
    """Return the source of a pip option for messages: its environment variable if set, otherwise pip.conf."""
    variable = f"PIP_{option.upper().replace('-', '_')}"
    return variable if environ.get(variable) else f"`{option}` in pip.conf"


def _keyring_provider(options: Mapping[str, str]) -> str:
    """Return pip's keyring provider; `auto` becomes `disabled` under pip's `no-input`, because a keyring may prompt.

    Raises `InstallerConfigurationError` for an unknown provider.
    """
    provider = options.get("keyring-provider", "auto")
    if provider not in KEYRING_PROVIDERS:
        raise InstallerConfigurationError(
            f"pip's `keyring-provider` is not one of {', '.join(KEYRING_PROVIDERS)}",
            hints=("correct PIP_KEYRING_PROVIDER or pip.conf",),
        )
    return "disabled" if provider == "auto" and _is_true(options.get("no-input", "")) else provider


def _options(environ: Mapping[str, str]) -> dict[str, str]:
    """Return pip's options from its files and environment variables, by long name (`index-url`)."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in _files(environ):
        parser = _parsed(path)
        for section, options in sections.items():
            if parser.has_section(section):
                options.update({_option(key): value for key, value in parser.items(section) if value})
    variables = {
        _option(key.removeprefix("PIP_")): value
        for key, value in environ.items()
        if key.startswith("PIP_") and value and key != "PIP_CONFIG_FILE"
    }
    merged = {**sections["global"], **sections["install"], **variables}
    for alias, option in (("default-timeout", "timeout"), ("pypi-url", "index-url")):
        if alias in merged:
            merged.setdefault(option, merged[alias])
    return merged


def _option(key: str) -> str:
    return key.lower().replace("_", "-").removeprefix("--")


def _files(environ: Mapping[str, str]) -> list[Path]:
    """Return the paths of pip's configuration files in order of increasing precedence."""
    chosen = environ.get("PIP_CONFIG_FILE", "")
    if chosen == "/dev/null":
        return []
    home = Path(environ.get("HOME") or "~").expanduser()
    files = [Path(place) / "pip" / "pip.conf" for place in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if place]
    files.append(Path("/etc/pip.conf"))
    if sys.platform == "darwin":
        files.append(Path("/Library/Application Support/pip/pip.conf"))
    if not (chosen and Path(chosen).exists()):
        files += [home / ".pip" / "pip.conf", _user_directory(environ, home) / "pip.conf"]
    files.append(Path(environ.get("VIRTUAL_ENV") or sys.prefix) / "pip.conf")
    return [*files, Path(chosen)] if chosen else files


def _user_directory(environ: Mapping[str, str], home: Path) -> Path:
    support = home / "Library" / "Application Support" / "pip"
    if sys.platform == "darwin" and support.is_dir():
        return support
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip"


def _parsed(path: Path) -> RawConfigParser:
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (Error, UnicodeDecodeError) as error:
        # The words of the error itself quote lines of the file, which may hold logins.
        lines = [str(number) for number, _ in getattr(error, "errors", ())] or [str(getattr(error, "lineno", None) or "")]
        reason = f"line {', '.join(lines)} is wrong" if any(lines) else "it is not UTF-8 text with sections"
        raise InstallerConfigurationError(f"pip's configuration `{path}` cannot be read: {reason}") from None
    except OSError as error:
        raise InstallerConfigurationError(f"pip's configuration `{path}` cannot be read: {error.strerror}") from None
    return parser


def _number(options: Mapping[str, str], key: str, default: float) -> float:
    text = options.get(key)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        # What is no number may be a secret that was given to the wrong option, so it is not told.
        raise InstallerConfigurationError(f"pip's `{key}` is not a number", hints=(_advice(key),)) from None
    is_nothing = key == "timeout" and number == 0
    if is_nothing or not 0 <= number < float("inf"):
        raise InstallerConfigurationError(
            f"pip's `{key}` is `{text}`, {'and no answer comes in no time' if is_nothing else 'which is not a number'}",
            hints=(_advice(key),),
        )
    return number


def _advice(option: str) -> str:
    return f"correct PIP_{option.upper().replace('-', '_')} or pip.conf"


def _read_limit(text: str) -> int:
    """Return a number of bytes written as `500MB` or `2GB`; `LIMIT` for ""."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kMGT]?)B?", text.strip()) if text else None
    if text and (match is None or not float(match[1])):
        raise InstallerConfigurationError(f"{VARIABLE} is no number of bytes", hints=("write it as 2GB",))
    return int(float(match[1]) * 1000 ** " kMGT".index(match[2] or " ")) if match else LIMIT


def _is_true(text: str) -> bool:
    return text.strip().lower() in _TRUE
