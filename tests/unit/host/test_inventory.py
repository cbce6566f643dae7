"""Rosters: hosts from files of every kind, under names of their own."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from provisioner.document import STDIN, Document, FileError
from provisioner.errors import InvalidDocumentError, ProvisionError, UsageError
from provisioner.host.inventory import InventoryHost, read_host, read_inventory

if TYPE_CHECKING:
    from pathlib import Path

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.compute.major": "x"}}}


def refused(path: Path) -> ProvisionError:
    with pytest.raises(ProvisionError) as raised:
        read_inventory((path,))
    return raised.value


def test_what_is_no_profile_is_answered_with_what_writes_one(tmp_path: Path) -> None:
    captured = tmp_path / "smi.txt"
    captured.write_text("| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |\n")
    written = tmp_path / "host.yaml"
    written.write_text("kernel: [6.8\n")
    hint = "`provision inspect` prints the profile of its machine, and with `--from FILE` what a captured report tells"
    for path, hints in ((captured, (hint,)), (written, ())):
        with pytest.raises(InvalidDocumentError) as raised:
            read_host(path)
        assert raised.value.hints == hints


def test_a_directory_is_every_file_in_it_and_below_it(tmp_path: Path) -> None:
    (tmp_path / "rack1").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b.yaml").write_text("kernel: 6.8.0\n", encoding="utf-8")
    (tmp_path / "a.yml").write_text("kernel: 6.8.0\n", encoding="utf-8")
    (tmp_path / "rack1" / "b.yaml").write_text("kernel: 5.15.0\n", encoding="utf-8")
    (tmp_path / ".git" / "c.yaml").write_text("kernel: 5.15.0\n", encoding="utf-8")
    (tmp_path / "fleet.csv").write_text("name,count,kernel\nx,3,6.8.0\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("nothing\n", encoding="utf-8")
    found = read_inventory((tmp_path,))
    assert [(one.name, one.count, one.host.kernel) for one in found] == [
        ("a", 1, "6.8.0"), ("b", 1, "6.8.0"), ("x", 3, "6.8.0"), ("rack1/b", 1, "5.15.0")
    ]  # fmt: skip
    assert found[0].host is found[1].host
    assert found[1].host is found[2].host
    assert [str(one.place).removeprefix(f"{tmp_path}/") for one in found] == ["a.yml", "b.yaml", "fleet.csv:2", "rack1/b.yaml"]


def test_a_json_list_holds_profiles_with_names_and_without(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    items = [{"kernel": "6.8.0"}, {"name": "gpu-7", "host": {"kernel": "6.8.0", "loaded_modules": ["nouveau"]}, "count": 40}]
    path.write_text(json.dumps(items), encoding="utf-8")
    first, second = read_inventory((path,))
    assert (first.name, first.count, str(first.place)) == ("fleet[0]", 1, f"{path}[0]")
    assert (second.name, second.count, second.host.loaded_modules) == ("gpu-7", 40, ("nouveau",))


def test_one_profile_as_json(tmp_path: Path) -> None:
    (tmp_path / "h100.json").write_text('{"gpus": [{"compute_capability": "9.0"}]}', encoding="utf-8")
    (found,) = read_inventory((tmp_path / "h100.json",))
    assert found.name == "h100"
    assert found.host.gpus is not None


def test_nodes_as_yaml(tmp_path: Path) -> None:
    text = 'apiVersion: v1\nkind: List\nitems:\n- kind: Node\n  metadata: {name: n1, labels: {kubernetes.io/arch: "arm64"}}\n'
    (tmp_path / "nodes.yaml").write_text(text, encoding="utf-8")
    (found,) = read_inventory((tmp_path / "nodes.yaml",))
    assert (found.name, found.host.platform, found.labels) == ("n1", "linux/arm64", {"kubernetes.io/arch": "arm64"})


@pytest.mark.parametrize(
    ("text", "name"),
    [('{"kernel": "6.8.0"}', "-"), ("name,kernel\nx,6.8.0\n", "x"), ("kernel: 6.8.0\n", "-")],
)
def test_stdin_is_read_for_what_it_is(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    (found,) = read_inventory((STDIN,))
    assert (found.name, found.host.kernel) == (name, "6.8.0")


def test_what_powershell_redirected_is_read(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("name,kernel\r\nx,6.8.0\r\n", encoding="utf-16")
    (found,) = read_inventory((tmp_path / "nodes.csv",))
    assert (found.name, found.host.kernel) == ("x", "6.8.0")


def test_mistakes_of_all_files_are_reported_at_their_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kernle: 6.8.0\n", encoding="utf-8")
    (tmp_path / "b.json").write_text('[\n  {"kernel": "6.8.0"},\n  {"kernel": 6.8,\n   "gpu": []}\n]', encoding="utf-8")
    (tmp_path / "c.csv").write_text("driver.module\nopne\n", encoding="utf-8")
    (tmp_path / "d.json").write_text(json.dumps(NODE, indent=1), encoding="utf-8")
    error = refused(tmp_path)
    assert isinstance(error, InvalidDocumentError)
    assert error.message == "list of hosts has 5 mistakes"
    assert [cause.removeprefix(f"{tmp_path}/") for cause in error.causes] == [
        "a.yaml:1:1: kernle: unknown key `kernle`; did you mean `kernel`?",
        'b.json:3:4: kernel: 6.8 is not quoted; write "6.8" (12.10 is not 12.1)',
        "b.json:4:4: gpu: unknown key `gpu`; did you mean `gpus`?",
        "c.csv:2:1: driver.module: `opne` must be open or proprietary",
        "d.json:7:4: metadata.labels.nvidia.com/gpu.compute.major: `x` is not a number",
    ]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"kernel" "6.8.0"}', "1:11: is not JSON: Expecting ':' delimiter"),
        ("7", "1:1: must hold a host, or a list of them"),
        ("[7]", "1:1: the file must hold a mapping of keys to values"),
        ('[{"host": {}, "nmae": "x"}]', "1:15: [0].nmae: unknown key `nmae`; known keys: count, host, name"),
        ('[{"host": {}, "count": 0}]', "1:15: [0].count: must be a whole number from 1"),
        ('[{"host": {}, "name": ""}]', "1:15: [0].name: must be text"),
        ('{"apiVersion": "v1", "kind": "Pod"}', None),
    ],
)
def test_json_of_another_form_is_refused(text: str, cause: str | None, tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(text, encoding="utf-8")
    if cause is None:
        cause = "1:22: kind: `Pod` is neither a Node nor a List of them: save what `kubectl get nodes -o json` prints"
    found = refused(path).causes
    assert len(found) == 1
    # The decoder's own words differ between releases of Python.
    assert found[0].partition("is not JSON")[0] == f"{path}:{cause}".partition("is not JSON")[0]


def test_half_a_character_in_json_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text('[{"gpus": [{"name": "H100"}]},\n {"gpus": [{"name": "H\\ud800"}]}]', encoding="utf-8")
    (cause,) = refused(path).causes
    text = "gpus[0].name: holds half of a character, which nothing can be written with; write the whole one"
    assert cause == f"{path}:2:13: {text}"


def test_two_hosts_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "fleet.csv").write_text("name,kernel\na,6.8.0\na,6.5.0\n", encoding="utf-8")
    error = refused(tmp_path)
    assert isinstance(error, UsageError)
    assert error.message == "two hosts are called `a`"
    assert error.causes == (f"a  ({tmp_path}/fleet.csv:2)", f"a  ({tmp_path}/fleet.csv:3)")


def test_a_directory_without_hosts_and_a_file_that_is_missing(tmp_path: Path) -> None:
    assert refused(tmp_path).message == f"`{tmp_path}` holds no hosts"
    error = refused(tmp_path / "none.csv")
    assert isinstance(error, FileError)
    assert error.message == f"host table `{tmp_path}/none.csv` does not exist"


def test_json_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000, encoding="utf-8")
    assert refused(path).causes == (f"{path}:1:1: is nested too deeply to be read",)


def test_a_mistake_made_ten_thousand_times_is_not_said_ten_thousand_times(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps([{"kernel": str(number), "gpu": 1} for number in range(1000)], indent=1), encoding="utf-8")
    assert len(refused(path).causes) == 20


def test_a_list_in_yaml_is_what_it_is_in_json(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("- {kernel: 6.8.0}\n- name: gpu-7\n  host: {kernel: 6.8.0}\n  count: 40\n", encoding="utf-8")
    first, second = read_inventory((path,))
    assert (first.name, first.count, str(first.place)) == ("fleet[0]", 1, f"{path}:1")
    assert (second.name, second.count, str(second.place)) == ("gpu-7", 40, f"{path}:2")
    assert first.host is second.host
    path.write_text("- name: gpu-7\n  host: {kernal: 6.8.0}\n- name: 3\n  host: {}\n", encoding="utf-8")
    assert [cause.removeprefix(f"{path}:") for cause in refused(path).causes] == [
        "2:10: kernal: unknown key `kernal`; did you mean `kernel`?",
        "3:3: [1].name: must be text",
    ]


def test_one_host_of_many_is_named_behind_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    nodes = [{"kind": "Node", "metadata": {"name": f"node-{number}"}} for number in range(30_000)]
    path.write_text(json.dumps({"kind": "List", "items": nodes}), encoding="utf-8")
    found = read_host(tmp_path / "nodes.json#node-29999")
    assert isinstance(found, InventoryHost)
    assert (found.name, str(found.place)) == ("node-29999", f"{path}: items[29999]")
    with pytest.raises(UsageError) as raised:
        read_host(path)
    assert raised.value.message == f"`{path}` lists 30,000 hosts, and one is meant here"
    assert raised.value.hints[0] == f"name it behind a #, as in {path}#node-0"
    with pytest.raises(UsageError) as raised:
        read_host(tmp_path / "nodes.json#gpu")
    assert raised.value.message == f"`{path}` lists no host `gpu`"
    assert raised.value.hints[0].startswith("it lists node-0, node-1, ")


def test_a_file_with_one_host_is_that_host_and_a_hash_may_be_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "a#b.yaml").write_text("kernel: 6.8.0\n", encoding="utf-8")
    assert isinstance(read_host(tmp_path / "a#b.yaml"), Document)
    (tmp_path / "one.json").write_text(json.dumps({"kind": "Node", "metadata": {"name": "n"}}), encoding="utf-8")
    one = read_host(tmp_path / "one.json")
    assert isinstance(one, InventoryHost)
    assert one.name == "n"
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "x.yaml").write_text("kernel: 6.8.0\n", encoding="utf-8")
    named = read_host(tmp_path / "hosts#x")
    assert isinstance(named, InventoryHost)
    assert named.host.kernel == "6.8.0"
