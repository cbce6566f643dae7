"""What a lock keeps of the spec: the keys that decide an answer, and nothing of one machine or of credentials."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from packaging.requirements import Requirement

from provisioner.lock.requested import recorded_extras, recorded_requirements, request_of, requested
from provisioner.spec.model import Spec


def spec(**fields: Any) -> Spec:  # noqa: ANN401 - keys of a spec
    return convert(fields, Spec)


def test_a_spec_of_defaults_asks_for_nothing() -> None:
    assert requested(spec()) == {}
    assert requested(spec(name="trainer", outputs=("requirements",))) == {}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"requires": {"pytorch": ">=2.6", "cuda": "12.*"}}, {"requires.cuda": "12.*", "requires.pytorch": ">=2.6"}),
        ({"packages": ("numpy",)}, {"packages.numpy": "any version"}),
        ({"packages": ("Foo_Bar[b,a]>=1,<2",)}, {"packages.foo-bar": "[a,b]<2,>=1"}),
        (
            {"packages": ("x<1; python_version < '3.11'", "x>=1; python_version >= '3.11'")},
            {"packages.x": '<1; python_version < "3.11" and >=1; python_version >= "3.11"'},
        ),
        ({"policy": {"strategy": "oldest"}}, {"policy.strategy": "oldest"}),
        ({"policy": {"exclude-newer": "2026-09-01"}}, {"policy.exclude-newer": "2026-09-01"}),
        ({"policy": {"allow": ("ptx-jit", "sdist")}}, {"policy.allow": "ptx-jit, sdist"}),
        ({"target": {"platform": ("linux/amd64", "linux/arm64")}}, {"target.platform": "linux/amd64, linux/arm64"}),
        ({"accelerator": "cpu", "runs": "host"}, {"accelerator": "cpu", "runs": "host"}),
        ({"image": {"base": "slim"}}, {"image.base": "slim"}),
        ({"indexes": ({"name": "own", "url": "https://me:secret@example.org/simple"},)}, {"indexes.own": "https://example.org/simple"}),
    ],
)  # fmt: skip
def test_each_key_that_decides_an_answer(fields: dict[str, Any], found: dict[str, str]) -> None:
    assert requested(spec(**fields)) == found


@pytest.mark.parametrize("host", ["hosts/h100.yaml", ("a.yaml", "b.yaml"), {"kernel": "6.8"}, "auto"])
def test_nothing_of_the_machines(host: object) -> None:
    assert requested(spec(target={"host": host})) == {}


def test_a_request_for_a_component_or_a_distribution() -> None:
    keys = {"requires.cuda": "12.*", "packages.numpy": "<2"}
    found = [request_of(keys, subject) for subject in ("cuda", "numpy", "torch")]
    assert found == [("requires.cuda", "12.*"), ("packages.numpy", "<2"), None]


@pytest.mark.parametrize(
    "texts",
    [
        ("numpy",),
        ("numpy[b,a]<2",),
        ("numpy>=2; python_version < '3.13' and sys_platform == 'linux'", "numpy[more]<2; python_version >= '3.13'"),
        ("numpy @ https://example.org/numpy-1.0-py3-none-any.whl ; python_version < '3.13'", "numpy[a]"),
        ("numpy", "numpy<3"),
    ],
)
def test_what_is_recorded_of_a_distribution_is_read_as_the_requirements_it_was(texts: tuple[str, ...]) -> None:
    recorded = requested(spec(packages=texts))["packages.numpy"]
    assert set(recorded_requirements("numpy", recorded)) == set(map(Requirement, texts))


def test_text_that_is_no_requirement_records_none() -> None:
    assert recorded_requirements("numpy", "not valid!! and [") == ()


def test_the_extras_of_requests_and_overrides() -> None:
    keys = requested(spec(packages=("alpha[One.Two]>=1", "alpha[three]"), overrides=("beta[x]",), constraints=("gamma<2",)))
    assert recorded_extras(keys) == {"alpha": {"one-two", "three"}, "beta": {"x"}}
