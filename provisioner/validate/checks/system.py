"""List the packages of the distribution that an image holds, from the database of dpkg, and print them as one line of JSON.

Runs in any container with Python 3.7 or newer, with nothing but the standard library. Databases are read as files: an image without
dpkg's programs, such as a distroless one, has its packages listed, too. Of other package managers only the presence is told.

Sources: dpkg(1), "Package states" and /var/lib/dpkg/status; deb-control(5), field Source; os-release(5); Debian Policy 4.7, 12.5
"Copyright information", and "Machine-readable debian/copyright file", version 1.0. Distroless images have one
file for each package in /var/lib/dpkg/status.d (github.com/GoogleContainerTools/distroless, PACKAGE_METADATA.md).

Usage: python -c SYSTEM [ROOT]     (ROOT: the folder of another file system, for tests)
"""

import io
import json
import os
import re
import sys

UNREAD = {
    "rpm": (
        "var/lib/rpm/rpmdb.sqlite",
        "var/lib/rpm/Packages.db",
        "var/lib/rpm/Packages",
        "usr/lib/sysimage/rpm/rpmdb.sqlite",
        "usr/lib/sysimage/rpm/Packages.db",
        "usr/lib/sysimage/rpm/Packages",
        "var/lib/rpmmanifest/container-manifest-2",
    ),
    "apk": ("lib/apk/db/installed", "usr/lib/apk/db/installed"),
    "pacman": ("var/lib/pacman/local",),
}
"""The databases of package managers that are not read, by where they are."""

PRESENT = frozenset(("unpacked", "half-configured", "triggers-awaited", "triggers-pending", "installed"))
"""The states of dpkg(1) in which the files of a package are there."""


def paragraphs(text):
    """Yield each paragraph of a control file as a dictionary of its fields; the further lines of a field are left out."""
    for block in re.split(r"\n[ \t]*\n", text):
        lines = [line for line in block.split("\n") if line and not line[0].isspace()]
        yield {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def status_files(root):
    """Yield the files in which dpkg, or what made a distroless image, has written the packages that are installed."""
    status = os.path.join(root, "var/lib/dpkg/status")
    if os.path.exists(status):
        yield status
    folder = os.path.join(root, "var/lib/dpkg/status.d")
    if os.path.isdir(folder):
        for name in sorted(os.listdir(folder)):
            if not name.endswith((".md5sums", ".list")):
                yield os.path.join(folder, name)


def packages(root, files):
    """Return the packages of status files, each once, sorted, with their licences; one without a state is installed."""
    found = {}
    for file in files:
        with io.open(file, encoding="utf-8", errors="replace") as stream:
            for fields in paragraphs(stream.read()):
                state = (fields.get("status", "") or "installed").split()[-1]
                if fields.get("package") and fields.get("version") and state in PRESENT:
                    key = fields["package"], fields["version"], fields.get("architecture", "")
                    found[key] = source_of(fields)
    return [
        {
            "name": name,
            "version": version,
            "architecture": architecture,
            "source": source[0],
            "source_version": source[1],
            **licenses(root, name),
        }
        for (name, version, architecture), source in sorted(found.items())
    ]


def licenses(root, name):
    """Return the licences that the copyright file of a package has by their short names, or the common texts that it refers to."""
    text = copyright_of(root, name)
    if re.match(r"\s*Format(-Specification)?:\s*\S*(copyright-format|dep5)", text, re.IGNORECASE):
        return {"licenses": once(fields.get("license", "") for fields in paragraphs(text)), "texts": []}
    texts = re.findall(r"/usr/share/common-licenses/([A-Za-z0-9][A-Za-z0-9.+-]*)", text)
    return {"licenses": [], "texts": once(one.rstrip(".") for one in texts)}


def copyright_of(root, name):
    """Return the copyright file of a package, "" if the image does not have it."""
    if not re.match(r"[a-z0-9][a-z0-9.+-]*$", name):
        return ""
    try:
        with io.open(os.path.join(root, "usr/share/doc", name, "copyright"), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def once(words):
    """Return each word once, in their order."""
    found = []
    for word in words:
        if word and word not in found:
            found.append(word)
    return found


def source_of(fields):
    """Return the name and the version of the source package, each "" if it is that of the package itself."""
    match = re.match(r"(\S+)(?:\s+\((.*)\))?$", fields.get("source", ""))
    name, version = (match.group(1), match.group(2) or "") if match else ("", "")
    return "" if name == fields["package"] else name, "" if version == fields["version"] else version


def system(root):
    """Return the identifier and the version of a distribution, "" if they are not stated."""
    for name in ("etc/os-release", "usr/lib/os-release"):
        try:
            with io.open(os.path.join(root, name), encoding="utf-8", errors="replace") as stream:
                lines = [line.strip().partition("=") for line in stream]
        except OSError:
            continue
        stated = {key: value.strip("\"'") for key, _, value in lines}
        return stated.get("ID", ""), stated.get("VERSION_ID", "")
    return "", ""


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "/"
    files = list(status_files(root))
    identifier, version = system(root)
    unread = [name for name, places in UNREAD.items() if any(os.path.exists(os.path.join(root, place)) for place in places)]
    found = {
        "id": identifier,
        "version": version,
        "packages": packages(root, files) if files else None,
        "unread": sorted(unread),
    }
    print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    main()
