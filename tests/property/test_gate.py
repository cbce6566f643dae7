"""The evaluator of container gates against two others: a second one written differently here, and the script in the images.

The second evaluation turns a requirement into a Python expression, and decides what is unknown by trying every combination from
a grid of values that lies around everything the generated requirements mention.
"""

from __future__ import annotations

import importlib.util
import re
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import provisioner.render
from provisioner.gate.check import check_gate
from provisioner.gate.evaluate import GateFacts, GateGpu
from provisioner.gate.grammar import GateError, parse
from tests.shipped import shipped
from tests.strategies import times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.property

DRIVERS = ("418", "450.80.02", "470", "470.256.02", "525.60.13", "535", "535.104.05", "535.104.5", "580.65.06", "580")
LEVELS = ("11.4", "12", "12.0", "12.2", "12.10", "12.8", "13.0", "13.1")
ARCHES = ("5.2", "7.0", "7.5", "8", "8.0", "8.9", "9.0", "10.0", "12.0", "12.1")
BRANDS = ("tesla", "Tesla", "nvidia", "geforce", "GeForceRTX", "quadro", "unknown", "grid")
VERSIONS = {"driver": DRIVERS, "cuda": LEVELS, "arch": ARCHES}
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
NEITHER = ("colour=green", "jetpack>=6.0", "csv-mounts=all", "cpu!=arm")


def clause(random: Random) -> str:
    name = random.choice(("driver", "driver", "cuda", "arch", "brand", "DRIVER", "neither"))
    if name == "neither":
        return random.choice(NEITHER)
    if name == "brand":
        return f"brand{random.choice(('=', '=', '!='))}{random.choice(BRANDS)}"
    return f"{name}{random.choice(OPERATORS)}{random.choice(VERSIONS[name.lower()])}"


def expression(random: Random) -> str:
    """One requirement, with commas and spaces where nobody needs them, now and then."""
    terms = []
    for _ in range(random.randint(0, 5)):
        clauses = [clause(random) for _ in range(random.choice((1, 1, 2, 2, 3, 4)))]
        terms.append(random.choice((",", ",", ",", ",,")).join(clauses))
    return random.choice((" ", " ", " ", "  ")).join(["", *terms, ""] if random.random() < 0.2 else terms)


def size(version: str) -> Fraction:
    """A version as one number: what follows the first dot counts a millionth of what is before it, and so on."""
    return sum((Fraction(int(part), 10 ** (6 * index)) for index, part in enumerate(version.split("."))), Fraction(0))


_COMPARISON = re.compile(r"(?P<name>\w[\w-]*)(?P<operator>[<>=!]+)(?P<value>[^,\s]+)")


def meaning(text: str) -> Callable[[dict[str, Any]], bool]:
    """The requirement as a function of complete facts, made by rewriting it into Python."""

    def comparison(match: re.Match[str]) -> str:
        name, operator, value = match["name"].lower(), match["operator"], match["value"]
        if name not in {"driver", "cuda", "arch", "brand"}:
            return "SKIPPED"
        shown = repr(value.lower()) if name == "brand" else f"size({value!r})"
        return f"({name}{'==' if operator == '=' else operator}{shown})"

    alternatives = []
    for term in text.split():
        found = [one for one in re.split(",+", _COMPARISON.sub(comparison, term)) if one not in {"SKIPPED", ""}]
        if found:
            alternatives.append("(" + " and ".join(found) + ")")
    code = compile(" or ".join(alternatives) or "True", text or "empty", "eval")
    return lambda facts: bool(eval(code, {"size": size, **facts}))


def around(versions: tuple[str, ...]) -> list[Fraction]:
    """Every version that is mentioned, one between each two, one below and one above."""
    sizes = sorted({size(version) for version in versions})
    between = [(low + high) / 2 for low, high in pairwise(sizes)]
    return sorted([sizes[0] / 2, *sizes, *between, sizes[-1] + 1])


GRID: dict[str, list[Any]] = {
    **{name: around(versions) for name, versions in VERSIONS.items()},
    "brand": [*sorted({brand.lower() for brand in BRANDS}), "somethingelse"],
}


def second_verdict(texts: list[str], known: list[dict[str, Any]], mentioned: set[str]) -> str:
    """Yes, no or unknown for hosts with GPUs of these facts; a fact left out is unknown, and driver and cuda are shared."""
    functions = [meaning(text) for text in texts]
    shared = [name for name in ("driver", "cuda") if name not in known[0]]
    outcomes = set()
    for values in product(*(GRID[name] if name in mentioned else GRID[name][:1] for name in shared)):
        answer = True
        possible = True
        for gpu in known:
            own = [name for name in ("arch", "brand") if name not in gpu]
            found = set()
            for more in product(*(GRID[name] if name in mentioned else GRID[name][:1] for name in own)):
                facts = {**gpu, **dict(zip(shared, values, strict=True)), **dict(zip(own, more, strict=True))}
                found.add(all(function(facts) for function in functions))
            answer = answer and found == {True}
            possible = possible and True in found
        outcomes.add("yes" if answer else "unknown" if possible else "no")
    return outcomes.pop() if len(outcomes) == 1 else "unknown"


def cases(count: int, *, share_unknown: float) -> Iterator[tuple[list[str], GateFacts, list[dict[str, Any]], set[str]]]:
    random = Random(20261121)
    for _ in range(count):
        texts = [expression(random) for _ in range(random.choice((1, 1, 1, 2, 3)))]
        driver, cuda = (
            ("" if random.random() < share_unknown else random.choice(VERSIONS[name])) for name in ("driver", "cuda")
        )
        gpus, known = [], []
        for _ in range(random.choice((1, 1, 1, 2))):
            arch = "" if random.random() < share_unknown else random.choice(ARCHES)
            brand = "" if random.random() < share_unknown else random.choice(BRANDS)
            gpus.append(GateGpu(arch=arch, brands=(brand,) if brand else ()))
            stated = {"driver": driver, "cuda": cuda, "arch": arch}
            facts: dict[str, Any] = {name: size(value) for name, value in stated.items() if value}
            known.append(facts | ({"brand": brand.lower()} if brand else {}))
        mentioned = {name for name in GRID if any(name in text.lower() for text in texts)}
        yield texts, GateFacts(driver=driver, cuda=cuda, gpus=tuple(gpus)), known, mentioned


@pytest.mark.parametrize(
    ("count", "share_unknown"), [(times(30_000), 0.0), (times(4_000), 0.25)], ids=["complete", "with unknown facts"]
)
def test_a_second_evaluation_agrees(count: int, share_unknown: float) -> None:
    seen = dict.fromkeys(("yes", "no", "unknown"), 0)
    for texts, facts, known, mentioned in cases(count, share_unknown=share_unknown):
        result = check_gate([parse(text) for text in texts], facts)
        assert result.verdict == second_verdict(texts, known, mentioned), (texts, facts)
        assert bool(result.refusals) == (result.verdict == "no"), (texts, facts)
        assert bool(result.unknown) == (result.verdict == "unknown"), (texts, facts)
        seen[result.verdict] += 1
    expected = ("yes", "no", "unknown") if share_unknown else ("yes", "no")
    assert all(seen[verdict] > count // 20 for verdict in expected), seen


def guard() -> Any:  # noqa: ANN401 - a script without types
    path = Path(provisioner.render.__file__).parent / "scripts" / "guard.py"
    spec = importlib.util.spec_from_file_location("guard", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_in_the_images_agrees_and_guesses_nothing() -> None:
    """On complete facts it says the same; on others it never says yes or no where the evaluator does not."""
    script = guard()
    words = {True: "yes", False: "no", None: "unknown"}
    for share in (0.0, 0.3):
        for texts, facts, _, _ in cases(times(30_000), share_unknown=share):
            for gpu in facts.gpus or ():
                own = {"driver": facts.driver, "cuda": facts.cuda, "arch": gpu.arch, "brand": "".join(gpu.brands).lower()}
                for text in texts:
                    answer, failing = script.judge(text, {name: value for name, value in own.items() if value})
                    verdict = check_gate([parse(text)], GateFacts(driver=facts.driver, cuda=facts.cuda, gpus=(gpu,))).verdict
                    assert words[answer] in {verdict, "unknown"}, (text, own)
                    assert share or words[answer] == verdict, (text, own)
                    assert bool(failing) == (answer is False)


def test_official_requirements_read_alike_by_all_three() -> None:
    script = guard()
    texts = sorted({image.require_cuda for image in shipped().images if image.require_cuda})
    hosts = [
        dict(zip(("driver", "cuda", "arch", "brand"), facts, strict=True))
        for facts in product(
            ("418.226.00", "450.80.02", "470.256.02", "525.60.13", "535.104.05", "550.54.15", "570.26", "580.65.06"),
            ("10.1", "11.4", "12.2", "12.8", "13.0"),
            ("7.0", "9.0"),
            ("tesla", "geforce", "nvidia", "unknown", "titanrtx"),
        )
    ]
    hosts = Random(3).sample(hosts, min(len(hosts), times(len(hosts))))
    for text in texts:
        means, read = meaning(text), parse(text)
        for host in hosts:
            complete = {name: size(value) if name != "brand" else value for name, value in host.items()}
            gpu = GateGpu(arch=host["arch"], brands=(host["brand"],))
            verdict = check_gate([read], GateFacts(driver=host["driver"], cuda=host["cuda"], gpus=(gpu,))).verdict
            assert (verdict == "yes") == means(complete) == script.judge(text, host)[0], (text, host)


def test_texts_that_cannot_be_read_refuse_nothing_in_the_images() -> None:
    """A mistake in one clause must not refuse a host: at most another alternative lets it in."""
    script = guard()
    random = Random(7)
    facts = {"driver": "535.104.05", "cuda": "12.2", "arch": "9.0", "brand": "nvidia"}
    unreadable = 0
    for _ in range(times(20_000)):
        text = "".join(
            random.choice(("cuda", "driver", "arch", "brand", ">", "=", "<", "!", "12", ".", "5", " ", ",", "x"))
            for _ in range(7)
        )
        answer, _ = script.judge(text, facts)
        try:
            parse(text)
        except GateError:
            unreadable += 1
            if len(text.split()) == 1 and "," not in text:
                assert answer is not False, text
    assert unreadable > times(20_000) // 4
