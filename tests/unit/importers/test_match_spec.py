"""Match specs of conda mean what conda's documentation says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from provisioner.importers.match_spec import MatchSpec, parse_match_spec
from tests.strategies import examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("numpy", MatchSpec(name="numpy")),
        ("NumPy", MatchSpec(name="numpy")),
        ("numpy=1.26", MatchSpec(name="numpy", version="=1.26", specifier="==1.26.*")),
        ("numpy==1.26", MatchSpec(name="numpy", version="==1.26", specifier="==1.26")),
        ("numpy 1.26", MatchSpec(name="numpy", version="1.26", specifier="==1.26")),
        ("numpy 1.26.*", MatchSpec(name="numpy", version="1.26.*", specifier="==1.26.*")),
        ("numpy=1.26.*", MatchSpec(name="numpy", version="=1.26.*", specifier="==1.26.*")),
        ("numpy=1.26*", MatchSpec(name="numpy", version="=1.26*", specifier="==1.26.*")),
        ("numpy>=1.22,<2", MatchSpec(name="numpy", version=">=1.22,<2", specifier=">=1.22,<2")),
        ("numpy >= 1.22, < 2", MatchSpec(name="numpy", version=">=1.22,<2", specifier=">=1.22,<2")),
        ("numpy!=1.24.0", MatchSpec(name="numpy", version="!=1.24.0", specifier="!=1.24.0")),
        ("numpy~=1.26.0", MatchSpec(name="numpy", version="~=1.26.0", specifier="~=1.26.0")),
        ("numpy *", MatchSpec(name="numpy", version="*")),
        ("numpy 1.24|1.26", MatchSpec(name="numpy", version="1.24|1.26", specifier=None)),
        ("numpy=2021a.b.c", MatchSpec(name="numpy", version="=2021a.b.c", specifier=None)),
        (
            "pytorch=2.1.0=py3.11_cuda12.1*",
            MatchSpec(name="pytorch", version="2.1.0", specifier="==2.1.0", build="py3.11_cuda12.1*"),
        ),
        ("pytorch 2.1.0 *cuda*", MatchSpec(name="pytorch", version="2.1.0", specifier="==2.1.0", build="*cuda*")),
        ("pytorch=*=cuda*", MatchSpec(name="pytorch", version="*", build="cuda*")),
        (
            "pytorch::torchvision>=0.16",
            MatchSpec(name="torchvision", channel="pytorch", version=">=0.16", specifier=">=0.16"),
        ),
        (
            "nvidia/label/cuda-12.1.0::cuda-toolkit",
            MatchSpec(name="cuda-toolkit", channel="nvidia/label/cuda-12.1.0"),
        ),
        (
            "conda-forge/linux-64::gcc=12",
            MatchSpec(name="gcc", channel="conda-forge/linux-64", version="=12", specifier="==12.*"),
        ),
        (
            "pandas[version='>=2,<3',build=py311*,md5=abc]",
            MatchSpec(name="pandas", version=">=2,<3", specifier=">=2,<3", build="py311*", others=("md5",)),
        ),
    ],
)
def test_a_match_spec_means(text: str, expected: MatchSpec) -> None:
    assert parse_match_spec(text) == expected


@pytest.mark.parametrize("text", ["", "=1.2", "a b c d [", "git+https://example.com/x.git", "numpy[version='1"])
def test_no_match_spec(text: str) -> None:
    with pytest.raises(ValueError, match="is not a match spec such as"):
        parse_match_spec(text)


@examples(300)
@given(text=st.text(alphabet="ab12.*=<>!~,| []':\"/", max_size=24))
def test_any_text_gives_specifiers_of_pep_440_or_an_error(text: str) -> None:
    try:
        found = parse_match_spec(text)
    except ValueError as error:
        assert str(error) == f"`{text}` is not a match spec such as pytorch=2.1 or conda-forge::numpy>=1.26"  # noqa: PT017
    else:
        SpecifierSet(found.specifier or "")
