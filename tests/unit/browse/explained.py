"""A small invented lock, explained, for tests of its page; names and reasons in it are hostile where a person writes them."""

from __future__ import annotations

from msgspec.structs import replace

from provisioner.browse.explanation_page import Subject, explanation_page
from provisioner.grounds.finding import EvidenceOf, NoSpec, ProvenEvidence, UnpinnedBase, Unverified, Validate
from provisioner.lock.explain import Explained, explain_lock
from provisioner.matrix.model import Citation
from provisioner.resolver.joint import solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.stack import PackagePin
from tests import small
from tests.lock_examples import DATEUTIL, SIX, lock_of
from tests.unit.evidence.reports import HOSTILE, report

CITATION = "a-table"
RULES = (
    small.rule("jax-first", {"jax": ">=0.9"}, {"cuda": ">=13"}),
    replace(small.rule("hostile", {"cuda": ">=12"}, {"gpu": ">=7.0"}), because=HOSTILE, source=(CITATION, "script")),
)
MATRIX = replace(
    small.matrix(
        ("jax", "cudnn", "cuda", "python", "driver", "gpu"),
        {
            "jax": {"0.10.1": {"python": ["3.12"]}, "0.9.0": {"python": ["3.12"]}, "0.8.0": {"cudnn": "==9.*"}},
            "cudnn": {"9.2.0": {"cuda": "==12.*"}, "9.1.0": {"cuda": "==12.*"}},
            "cuda": {"13.0.1": {"driver": ">=580"}, "12.6.3": {"driver": ">=525"}},
            "python": {"3.13": {}, "3.12": {}},
            "driver": {"580.95.05": {}, "535.104.05": {}},
            "gpu": {"9.0": {}},
        },
        rules=RULES,
    ),
    citations={
        CITATION: Citation(
            title=HOSTILE, where="row 1", url="https://example.org/?a=1&b=<2>", read="2026-01-01", measured=True
        ),
        "script": Citation(title="a script", url="javascript:alert(1)"),
        "invented": small.SOURCE,
    },
)
HOST = {"driver": {"version": "535.104.05"}, "gpus": [{"compute_capability": "9.0"}], "platform": "linux/amd64"}
REQUEST = small.request({"python": "3.12", "jax": "*"}, HOST, runs="host", packages=("six",))
REQUEST = replace(REQUEST, hosts=tuple(replace(one, label=f"rack <script>\u202e {one.label}") for one in REQUEST.hosts))
PROBLEM = join(MATRIX, REQUEST)
PACKAGES = (
    PackagePin(name="six", version="1.17.0", file=SIX),
    PackagePin(name="python-dateutil", version="2.9.0.post0", file=DATEUTIL, requires=("jax<0.9", "six>=1.5")),
)
SYSTEM = solve_system(join(MATRIX, replace(REQUEST, spec=replace(REQUEST.spec, packages=()))))
LOCK = replace(lock_of(replace(SYSTEM, packages=PACKAGES)), tool_version="1.2")
VALIDATE = Validate(lock="pylock.trainer.toml", platform="", level=None, is_local=True)
EVIDENCE = EvidenceOf(platform="linux/amd64", file="evidence.json", validate=VALIDATE)


def explained() -> Explained:
    """The lock, explained for its spec and host."""
    return explain_lock(LOCK.on("linux/amd64"), PROBLEM, file="pylock.trainer.toml")


def subject() -> Subject:
    """A lock that was checked and validated."""
    found = report("yes", "yes", idle=(0,))
    proven = ProvenEvidence(about=EVIDENCE, level=1, name="build", engine="docker 26.1.5", time=found.time)
    return Subject(
        file="pylock.trainer.toml",
        verdict="yes",
        findings=(UnpinnedBase(reference=f"image {HOSTILE}"),),
        evidence=((proven, found),),
        headlines={"linux/amd64": "runs on gpu 9.0 with driver 535.104.05"},
    )


def page() -> str:
    """The page of the lock."""
    return explanation_page(subject(), [explained()], MATRIX)


def page_without_hosts() -> str:
    """The page of a lock for a target of which nothing is known."""
    problem = join(MATRIX, small.request({"python": "3.12", "jax": "*"}, accelerator="cuda", runs="host"))
    stack = solve_system(problem)
    found = explain_lock(lock_of(stack).on("linux/amd64"), problem, file="pylock.trainer.toml")
    findings = tuple(Unverified(doubt=one) for one in stack.doubts)
    return explanation_page(subject()._replace(verdict="unverified", findings=findings), [found], MATRIX)


def page_without_spec() -> str:
    """The page of the lock as long as its spec is missing."""
    found = subject()._replace(verdict="unverified", findings=(NoSpec(object="provision.yaml"),), headlines={}, evidence=())
    return explanation_page(found, [Explained(lock=LOCK.on("linux/amd64"))], MATRIX)
