"""The documents that have a schema: the model that reads each, and what the model's checks know beyond its types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from provisioner.accelerators import ACCELERATORS, IMAGE_KINDS
from provisioner.evidence.statement import Statement
from provisioner.host.model import Host
from provisioner.matrix.files import (
    ComponentFile,
    DistributionFile,
    DriverPackageFile,
    FailureFile,
    GpuFile,
    HazardFile,
    HostPackageFile,
    ImageFile,
    KnowledgeFile,
    MatrixFile,
    PythonBuildFile,
    SystemPackageFile,
    SystemWheelFile,
    WheelFile,
)
from provisioner.outputs import OUTPUTS
from provisioner.schemas.generate import Overrides, schema, schema_file
from provisioner.schemas.shipped import IDENTIFIER, SCHEMAS
from provisioner.spec.check import NAMED_COMPONENTS
from provisioner.spec.model import SpecFile, TargetSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.matrix.model import Matrix

Keywords = dict[str, Any]

_RANGE = r"^\s*$|^\s*\*\s*$|^\s*(===|==|!=|<=|>=|~=|<|>)?\s*[^\s,<>=!~]+\s*(,\s*(===|==|!=|<=|>=|~=|<|>)?\s*[^\s,<>=!~]+\s*)*$"
"""The ranges of components: clauses with an operator or none. What follows an operator is checked by the loader alone."""

_ONCE: Keywords = {"uniqueItems": True}
_URL: Keywords = {"pattern": r"^(https?://[^\s/@]+(/|$)|file://)[^\s@]*$"}


class SchemaDocument(Struct, frozen=True, kw_only=True):
    """The model of a document; `besides` are keywords by the name of a definition, `overrides` as in `schema`."""

    model: type[Struct]
    besides: dict[str, Keywords] = field(default_factory=dict)
    overrides: Overrides = field(default_factory=dict)


def schema_texts(matrix: Matrix) -> Mapping[str, str]:
    """Return the text of each schema by name; the components that a spec may name are those of `matrix`."""
    found = {name: schema(one.model, overrides=one.overrides, besides=one.besides) for name, one in _documents(matrix).items()}
    return {name: schema_file(f"{IDENTIFIER}{name}", SCHEMAS[name], one) for name, one in found.items()}


def _documents(matrix: Matrix) -> dict[str, SchemaDocument]:
    return {
        "spec": SchemaDocument(model=SpecFile, besides=_spec(matrix), overrides={(TargetSpec, "host"): _INSIDE_A_SPEC}),
        "host": SchemaDocument(model=Host),
        "evidence": SchemaDocument(model=Statement),
        "matrix": SchemaDocument(model=MatrixFile),
        "matrix-component": SchemaDocument(model=ComponentFile),
        "matrix-gpus": SchemaDocument(model=GpuFile),
        "matrix-images": SchemaDocument(model=ImageFile),
        "matrix-python-builds": SchemaDocument(model=PythonBuildFile),
        "matrix-distributions": SchemaDocument(model=DistributionFile),
        "matrix-hazards": SchemaDocument(model=HazardFile),
        "matrix-knowledge": SchemaDocument(model=KnowledgeFile),
        "matrix-failures": SchemaDocument(model=FailureFile),
        "matrix-driver-packages": SchemaDocument(model=DriverPackageFile),
        "matrix-host-packages": SchemaDocument(model=HostPackageFile),
        "matrix-wheels": SchemaDocument(model=WheelFile),
        "matrix-system-packages": SchemaDocument(model=SystemPackageFile),
        "matrix-system-wheels": SchemaDocument(model=SystemWheelFile),
    }


_INSIDE_A_SPEC = str | tuple[str, ...] | Host | None
"""What `target.host` holds: paths, or the profile itself, which `host.profile` reads."""


def _spec(matrix: Matrix) -> dict[str, Keywords]:
    """Return what `spec.check` refuses beyond the types of a spec, where JSON Schema can say it, and what editors show."""
    names = sorted({*matrix.components, "pytorch_build"})
    architecture = rf"^(\d{{1,2}}\.\d[af]?(\+PTX)?|{ACCELERATORS['rocm'].target})$"
    a_range: Keywords = {"type": "string", "pattern": _RANGE}
    ranges = {name: {"type": "string"} if name in NAMED_COMPONENTS else a_range for name in names}
    outputs: Keywords = {"enum": list(OUTPUTS)}
    bases: Keywords = {"enum": sorted(IMAGE_KINDS)}
    only_of_a_named_image = ["distribution", "glibc", "python", "require"]
    return {
        "SpecFile": {
            "not": {"required": ["target", "targets"]},
            "properties": {
                "name": {"description": "The name of the environment; it is in the name of the lock, pylock.NAME.toml."},
                "targets": {"minProperties": 1},
                "accelerator": {"description": "Left out, it is what the target's GPUs call for."},
                "requires": {
                    "description": "Components of the matrix and the versions you accept.",
                    "properties": {name: {**one, "description": _title(matrix, name)} for name, one in ranges.items()},
                },
                "packages": {"description": "Python requirements (PEP 508), solved together with the components."},
                "constraints": {"description": "Bounds for what anything requires; or paths of requirement files."},
                "overrides": {"description": "Requirements in the place of what metadata requires."},
                "indexes": {"description": "The package indexes that are asked, in this order, and no others."},
                "outputs": {
                    "description": "The formats to write from the lock.",
                    "items": {"anyOf": [outputs, {"$ref": "#/$defs/OutputSpec"}]},
                },
                "runs": {
                    "description": "Where the environment runs; a list of both has a lock for each.",
                    **_ONCE,
                    "minItems": 1,
                },
            },
        },
        "OutputSpec": {"properties": {"format": outputs}},
        "TargetSpec": {"properties": {"platform": {**_ONCE, "minItems": 1}, "host": {**_ONCE, "minItems": 1, "minLength": 1}}},
        "IndexSpec": {
            "properties": {"url": _URL},
            "if": {"properties": {"kind": {"const": "find-links"}}, "required": ["kind"]},
            "then": {"required": ["packages"], "properties": {"packages": {"minItems": 1}}},
        },
        "Policy": {
            "properties": {
                "allow": _ONCE,
                "forbid": _ONCE,
                "exclude-newer": {"pattern": r"^\s*\d{4}-?\d{2}-?\d{2}([T ].+)?\s*$|^\s*\d{4}-?W\d{2}"},
            }
        },
        "BuildSpec": {"properties": {"arch_list": {**_ONCE, "items": {"pattern": architecture}}}},
        "ImageSpec": {
            "properties": {"apt": _ONCE},
            "if": {"anyOf": [{"not": {"required": ["base"]}}, {"properties": {"base": bases}}]},
            "then": {"properties": {key: {"type": "null"} for key in only_of_a_named_image}},
        },
    }


def _title(matrix: Matrix, name: str) -> str:
    component = matrix.components.get(name)
    return component.title if component is not None else "the build of PyTorch, such as cu126"
