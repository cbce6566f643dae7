"""Links of a saved tree stay in that tree, and what cannot be read is unknown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from provisioner.host.tree import Tree

if TYPE_CHECKING:
    from pathlib import Path


def test_an_absolute_link_is_followed_inside_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/target").write_text("inside")
    (root / "etc/link").symlink_to("/etc/target")
    (root / "usr").symlink_to("/etc")
    assert Tree(root).text("etc/link") == "inside"
    assert Tree(root).text("usr/link") == "inside"


def test_no_path_leads_out_of_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("outside")
    (root / "up").symlink_to("../secret")
    (root / "away").symlink_to(tmp_path / "secret")
    tree = Tree(root)
    assert tree.text("up") is None
    assert tree.text("away") is None
    assert tree.text("../secret") is None


def test_a_ring_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    tree = Tree(tmp_path)
    assert tree.text("a") is None
    assert tree.names("a") is None
    assert not tree.exists("a")


def test_a_pipe_in_a_saved_tree_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert Tree(tmp_path).bytes("pipe") is None


def test_a_directory_is_not_a_file_and_a_file_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"caf\xe9")
    tree = Tree(tmp_path)
    assert tree.text("") is None
    assert tree.names("file") is None
    assert tree.names("absent") is None
    assert tree.text("file") == "caf\ufffd"


def test_a_link_names_what_it_points_to_even_when_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "driver").symlink_to("../../drivers/vfio-pci")
    assert Tree(tmp_path).link_name("driver") == "vfio-pci"
    assert Tree(tmp_path).link_name("absent") is None
