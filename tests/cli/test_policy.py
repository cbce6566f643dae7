"""Policies from outside: what they choose among packages, what an answer rests on, and when a lock no longer keeps them."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING

from provisioner.matrix.cache import cached_matrix
from tests.project import LOCK, changed

if TYPE_CHECKING:
    from tests.project import Project

ENDED = "relaxed: end-of-life: image IMAGE ended 2026-07-11\n"
WROTE = f"wrote {LOCK}, Dockerfile, provision/install.py\nnext: docker build .\n"


def versions(project: Project) -> dict[str, str]:
    return dict(re.findall(r'\[\[packages\]\]\nname = "([^"]+)"\nversion = "([^"]+)"', project.read(LOCK)))


def test_a_preferred_version_is_taken_where_it_works(project: Project) -> None:
    project.write(changed('policy: {prefer: {beta: "==2.0", Alpha: "1.*"}}'))
    outcome = project.run("solve")
    assert (outcome.code, outcome.err) == (0, f"{ENDED}{WROTE}")
    assert versions(project) == {"alpha": "1.0", "beta": "2.0"}


def test_an_avoided_version_is_taken_only_where_nothing_else_works_and_then_named(project: Project) -> None:
    project.write(changed("packages: [alpha>=2]", 'policy: {avoid: {beta: ">=2", alpha: "<2"}}'))
    outcome = project.run("solve")
    assert outcome.code == 0
    assert outcome.err == (
        f"{ENDED}relaxed: avoided: beta 2.0 is chosen although you avoid beta >=2: "
        "no other was found to go with what is decided before it\n"
        f"{WROTE}"
    )
    assert '"avoided (beta)"' in project.read(LOCK)


def test_what_the_spec_avoids_counts_for_more_than_what_is_locked_and_what_it_does_not_name_stays(project: Project) -> None:
    project.write(changed("packages: [alpha, beta]"))
    assert project.run("solve").code == 0
    project.index.add_wheel("gamma", "2.0")
    project.write(changed("packages: [alpha, beta, gamma]", 'policy: {avoid: {alpha: ">=2"}}'))
    assert project.run("solve").code == 0
    assert versions(project) == {"alpha": "1.0", "beta": "2.0", "gamma": "2.0"}
    again = project.read(LOCK)
    assert project.run("solve").code == 0
    assert project.read(LOCK) == again


def test_a_preference_for_nothing_there_is_said(project: Project) -> None:
    project.write(changed('policy: {prefer: {nmpy: ">=2"}}'))
    outcome = project.run("solve")
    assert outcome.code == 0
    assert "warning: policy.prefer `nmpy` (provision.yaml:10) is in no stack, so it changes nothing\n" in outcome.err


def test_stable_takes_no_upload_of_the_week_and_says_where_no_time_is_known(project: Project) -> None:
    day = date.fromisoformat(max(one.read for one in cached_matrix(None).citations.values()))
    project.index.add_wheel("alpha", "3.0", requires=["beta>=2"], upload_time=f"{day - timedelta(6)}T00:00:00Z")
    project.index.add_wheel("beta", "3.0", upload_time=f"{day - timedelta(7)}T23:59:59Z")
    project.write(changed("policy: {strategy: stable, allow: [minor-version, end-of-life]}"))
    outcome = project.run("solve")
    assert versions(project) == {"alpha": "2.0", "beta": "3.0"}
    assert outcome.code == 0
    assert outcome.err == (
        f"{ENDED}warning: unverified: alpha: index local gives no upload time of 2.0, so it may be of this week\n{WROTE}"
    )


def test_stable_with_a_day_of_its_own_takes_nothing_without_a_time(project: Project) -> None:
    project.write(changed("policy: {strategy: stable, allow: [end-of-life], exclude-newer: 2026-11-20}"))
    outcome = project.run("solve")
    assert outcome.code == 3
    assert outcome.err.startswith(
        "error: index `local` gives no upload times, so exclude-newer cannot be honoured  [unavailable]\n"
    )


def test_a_prerelease_among_the_packages_is_named_when_it_is_used(project: Project) -> None:
    project.index.add_wheel("beta", "3.0rc1")
    project.write(changed("policy: {allow: [prerelease]}"))
    outcome = project.run("solve")
    assert versions(project) == {"alpha": "2.0", "beta": "3.0rc1"}
    assert outcome.err.startswith("relaxed: prerelease: beta 3.0rc1 is a prerelease\n")


def test_a_pinned_prerelease_that_is_forbidden_is_a_conflict_with_the_line_that_forbids_it(project: Project) -> None:
    project.index.add_wheel("beta", "3.0rc1")
    project.write(changed("packages: [alpha, beta==3.0rc1]", "policy: {forbid: [prerelease]}"))
    outcome = project.run("solve")
    assert outcome.code == 1
    lines = outcome.err.splitlines()[1:4]
    assert lines == [
        "  you forbid prerelease: no alphas, betas and release candidates  (provision.yaml:9)",
        "  you require beta==3.0rc1  (provision.yaml:8)",
        "  beta 3.0rc1 is a prerelease  (index local)",
    ]


def test_a_lock_whose_image_ended_is_stale_when_the_spec_forbids_that(project: Project) -> None:
    assert project.run("solve").code == 0
    project.write(changed("policy: {forbid: [end-of-life]}"))
    outcome = project.run("check")
    assert outcome.code == 1
    assert "the locked stack does not satisfy the spec, the matrix and the hosts  [stale-stack]" in outcome.out
    assert "you forbid end-of-life: nothing past its end of life  (provision.yaml:10)" in outcome.out
    assert "image IMAGE ended 2026-07-11" in outcome.out


def test_a_lock_with_a_package_the_policy_forbids_is_stale(project: Project) -> None:
    project.index.add_wheel("beta", "3.0rc1", upload_time="2026-11-13T10:00:00Z")
    project.write(changed("policy: {allow: [prerelease]}"))
    assert project.run("solve").code == 0
    project.write(changed("policy: {forbid: [prerelease], exclude-newer: 2026-11-12}"))
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        "  no: beta 3.0rc1 is a prerelease, and the spec forbids prerelease  (provision.yaml:10)  [stale-package]\n"
        "  no: beta 3.0rc1 was uploaded after 2026-11-12, the last day of the policy  (provision.yaml:10)  [stale-package]\n"
        "  solving the system half again would change nothing\n"
        "  `provision check --changes` asks the indexes which packages would move\n"
        "  next: provision solve\n"
    )
