"""The installer's own configuration, read from real files and variables as pip reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.index.address import as_url, credentials_in, local_path, project_url, public_url
from provisioner.index.settings import PYPI, IndexLocation, InstallerConfigurationError, named_locations, settings_from_pip

if TYPE_CHECKING:
    from pathlib import Path

PYPI_LOCATION = IndexLocation(name="pypi", url=PYPI)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment in which only files below `tmp_path` are user, site and system configuration."""
    prefix = tmp_path / "venv"
    prefix.mkdir()
    return {"HOME": str(tmp_path), "VIRTUAL_ENV": str(prefix), "XDG_CONFIG_DIRS": str(tmp_path / "xdg")}


def configure(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_configuration_the_index_is_pypi() -> None:
    settings = settings_from_pip({"PIP_CONFIG_FILE": "/dev/null"})
    assert settings.indexes == (PYPI_LOCATION,)
    assert settings.find_links == ()
    assert settings.ca_bundle == ""
    assert settings.timeout == 15.0


def test_variables_give_the_main_index_then_the_extra_ones_in_order() -> None:
    settings = settings_from_pip(
        {
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": "https://mirror.example.com/simple",
            "PIP_EXTRA_INDEX_URL": "https://pypi.org/simple\n  https://download.pytorch.org/whl/cu126",
        }
    )
    assert settings.indexes == (
        IndexLocation(name="main", url="https://mirror.example.com/simple"),
        PYPI_LOCATION,
        IndexLocation(name="pytorch-cu126", url="https://download.pytorch.org/whl/cu126"),
    )


def test_the_same_index_given_twice_is_one_index() -> None:
    environ = {"PIP_CONFIG_FILE": "/dev/null", "PIP_EXTRA_INDEX_URL": f"{PYPI} {PYPI}"}
    assert settings_from_pip(environ).indexes == (PYPI_LOCATION,)


def test_a_slash_at_the_end_makes_no_other_index() -> None:
    settings = settings_from_pip(
        {"PIP_CONFIG_FILE": "/dev/null", "PIP_EXTRA_INDEX_URL": f"{PYPI}/ https://a.example/ https://a.example"}
    )
    assert [location.url for location in settings.indexes] == [PYPI, "https://a.example/"]


def test_a_variable_replaces_what_a_file_says(tmp_path: Path, home: dict[str, str]) -> None:
    chosen = configure(tmp_path / "chosen.conf", "[global]\nindex-url = https://file.example/simple\ntimeout = 7\n")
    environ = {**home, "PIP_CONFIG_FILE": str(chosen), "PIP_INDEX_URL": "https://variable.example/simple"}
    settings = settings_from_pip(environ)
    assert [location.url for location in settings.indexes] == ["https://variable.example/simple"]
    assert settings.timeout == 7.0


def test_files_are_read_in_order_global_user_site_and_the_one_the_user_chose(tmp_path: Path, home: dict[str, str]) -> None:
    places = [
        tmp_path / "xdg" / "pip" / "pip.conf",
        tmp_path / ".pip" / "pip.conf",
        tmp_path / ".config" / "pip" / "pip.conf",
        tmp_path / "venv" / "pip.conf",
    ]
    for number, place in enumerate(places):
        configure(place, f"[global]\nindex-url = https://{number}.example/simple\n")
        assert settings_from_pip(home).indexes[0].url == f"https://{number}.example/simple"


def test_a_chosen_file_stands_in_for_the_users_own(tmp_path: Path, home: dict[str, str]) -> None:
    configure(tmp_path / ".config" / "pip" / "pip.conf", "[global]\nproxy = http://user.example\n")
    chosen = configure(tmp_path / "chosen.conf", "[global]\nindex-url = https://chosen.example/simple\n")
    settings = settings_from_pip({**home, "PIP_CONFIG_FILE": str(chosen)})
    assert settings.indexes[0].url == "https://chosen.example/simple"
    assert settings.proxy == ""


def test_install_section_replaces_global_even_from_an_earlier_file(tmp_path: Path, home: dict[str, str]) -> None:
    configure(tmp_path / "xdg" / "pip" / "pip.conf", "[install]\nindex-url = https://install.example/simple\n")
    configure(tmp_path / ".pip" / "pip.conf", "[global]\nindex_url = https://global.example/simple\n")
    assert settings_from_pip(home).indexes[0].url == "https://install.example/simple"


def test_an_empty_variable_says_nothing(tmp_path: Path, home: dict[str, str]) -> None:
    configure(tmp_path / ".pip" / "pip.conf", "[global]\nfind-links =\n  https://a.example/wheels\n  /srv/wheels\n")
    settings = settings_from_pip({**home, "PIP_FIND_LINKS": ""})
    assert settings.find_links == ("https://a.example/wheels", "file:///srv/wheels")


def test_no_index_leaves_find_links_only() -> None:
    settings = settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/srv/wheels"})
    assert settings.indexes == ()
    assert settings.find_links == ("file:///srv/wheels",)


def test_the_certificate_bundle_of_pip_comes_before_those_of_the_environment() -> None:
    environ = {"PIP_CONFIG_FILE": "/dev/null", "SSL_CERT_FILE": "/ssl.pem"}
    assert settings_from_pip(environ).ca_bundle == "/ssl.pem"
    assert settings_from_pip({**environ, "REQUESTS_CA_BUNDLE": "/requests.pem"}).ca_bundle == "/requests.pem"
    assert settings_from_pip({**environ, "PIP_CERT": "/pip.pem", "REQUESTS_CA_BUNDLE": "/r.pem"}).ca_bundle == "/pip.pem"


def test_pips_own_names_of_the_timeout_are_known() -> None:
    assert settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PIP_DEFAULT_TIMEOUT": "60"}).timeout == 60.0
    assert settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PIP_TIMEOUT": "5", "PIP_DEFAULT_TIMEOUT": "60"}).timeout == 5.0


@pytest.mark.parametrize("text", ["soon", "-1", "inf", "nan"])
def test_a_timeout_that_is_no_number_is_named(text: str) -> None:
    with pytest.raises(InstallerConfigurationError) as caught:
        settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PIP_TIMEOUT": text})
    told = "not a number" if text == "soon" else f"`{text}`, which is not a number"
    assert caught.value.message == f"pip's `timeout` is {told}"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["0", "0.0"])
def test_a_timeout_of_nothing_is_named(text: str) -> None:
    with pytest.raises(InstallerConfigurationError) as caught:
        settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PIP_TIMEOUT": text})
    assert caught.value.message == f"pip's `timeout` is `{text}`, and no answer comes in no time"
    assert settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": text}).retries == 0


def test_a_file_that_is_no_configuration_is_named(tmp_path: Path) -> None:
    broken = configure(tmp_path / "broken.conf", "index-url = https://x.example\n")
    with pytest.raises(InstallerConfigurationError, match=r"broken\.conf"):
        settings_from_pip({"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(broken)})


def test_names_hold_no_path_of_this_machine() -> None:
    names = [location.name for location in named_locations(["/srv/pypi/simple", "file:///home/me/index", PYPI])]
    assert names == ["main", "extra-1", "pypi"]


def test_no_two_indexes_share_a_name() -> None:
    urls = [PYPI, "https://download.pytorch.org/whl/cu126", "https://download.pytorch.org/whl/nightly/cu126"]
    assert [location.name for location in named_locations(urls)] == ["pypi", "pytorch-cu126", "extra-2"]


def test_credentials_are_taken_apart_from_the_address() -> None:
    url = "https://me:p%40ss@index.example:8443/simple"
    assert public_url(url) == "https://index.example:8443/simple"
    assert credentials_in(url) == ("me", "p@ss")
    assert credentials_in("https://index.example/a@b") is None
    assert public_url("https://index.example/a@b") == "https://index.example/a@b"


def test_paths_become_file_urls_and_back(tmp_path: Path) -> None:
    place = tmp_path / "my wheels"
    url = as_url(str(place))
    assert url == f"file://{tmp_path}/my%20wheels"
    assert local_path(url) == place
    assert local_path("https://x.example/a") is None


def test_project_pages_end_in_a_slash() -> None:
    assert project_url("https://x.example/simple/", "numpy") == "https://x.example/simple/numpy/"
