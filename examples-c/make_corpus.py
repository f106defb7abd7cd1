#!/usr/bin/env python3
"""Builds a large text out of the text files that are on this machine, for file_edit.c.

usage: make_corpus.py TEXT INDEX [MEGABYTES]

TEXT gets the files one after the other, each ending with a newline. INDEX gets one line per file:
the offset at which it starts in TEXT, a tab, its name. When the machine has too little text, the
same files follow again under new names ("copy2/..."). Nothing is downloaded. An existing TEXT that
is large enough is kept, so that a second run starts at once.
"""

import os
import subprocess
import sys
import sysconfig

LARGEST_FILE_BYTES = 4 << 20


def rust_sysroot():
    try:
        done = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def places():
    """(label, directory, file name endings), most readable sources first."""
    cargo_home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    yield "cargo registry", os.path.join(cargo_home, "registry", "src"), (".rs", ".md", ".toml")
    yield "Python library", sysconfig.get_paths()["stdlib"], (".py", ".txt")
    sysroot = rust_sysroot()
    if sysroot:
        yield "Rust library", os.path.join(sysroot, "lib", "rustlib", "src"), (".rs", ".md", ".toml")
    yield "/usr/include", "/usr/include", (".h", ".hpp", ".hh", ".inc", ".def", "")
    if sysroot:
        yield "Rust documentation", os.path.join(sysroot, "share", "doc"), (".md", ".txt", ".html")


def text_files(directory, endings):
    """Paths and contents of the readable UTF-8 texts below `directory`, in a fixed order."""
    for here, subdirs, names in os.walk(directory):
        subdirs[:] = sorted(d for d in subdirs if d not in ("site-packages", "__pycache__"))
        for name in sorted(names):
            path = os.path.join(here, name)
            if os.path.splitext(name)[1] not in endings or os.path.islink(path):
                continue
            if any(ord(c) < 32 for c in path):
                continue
            try:
                if not 0 < os.path.getsize(path) <= LARGEST_FILE_BYTES:
                    continue
                with open(path, "rb") as file:
                    content = file.read()
                content.decode("utf-8")
                path.encode("utf-8")
            except (OSError, UnicodeError):
                continue
            if b"\0" not in content:
                yield path, content if content.endswith(b"\n") else content + b"\n"


def collect(wanted_bytes):
    """Distinct texts, up to `wanted_bytes` of them, and how much came from where."""
    found, shares, total = [], {}, 0
    for label, directory, endings in places():
        for path, content in text_files(directory, endings):
            if total >= wanted_bytes:
                return found, shares
            found.append((path, content))
            shares[label] = shares.get(label, 0) + len(content)
            total += len(content)
    return found, shares


def write(found, wanted_bytes, text_path, index_path):
    """Writes text and index; returns bytes, files, copies of the whole."""
    offset, count, copy = 0, 0, 0
    with open(text_path + ".new", "wb") as text, open(index_path, "wb") as index:
        while offset < wanted_bytes:
            copy += 1
            for path, content in found:
                if offset >= wanted_bytes:
                    break
                name = path if copy == 1 else f"copy{copy}{path}"
                index.write(f"{offset}\t{name}\n".encode())
                text.write(content)
                offset += len(content)
                count += 1
    os.replace(text_path + ".new", text_path)
    return offset, count, copy


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    text_path, index_path = sys.argv[1:3]
    wanted_bytes = int(sys.argv[3] if len(sys.argv) == 4 else 105) * 1_000_000
    if os.path.exists(index_path) and os.path.exists(text_path) and os.path.getsize(text_path) >= wanted_bytes:
        print(f"corpus    {os.path.getsize(text_path) / 1e6:.1f} MB kept from an earlier run ({text_path})")
        return
    found, shares = collect(wanted_bytes)
    if not found:
        sys.exit("make_corpus.py: no text files found; use make run FILE=path with a text of your own")
    size, count, copies = write(found, wanted_bytes, text_path, index_path)
    print(f"corpus    {size / 1e6:.1f} MB, {count} source files in {text_path}")
    print("          " + ", ".join(f"{label} {share / 1e6:.1f} MB" for label, share in shares.items()))
    if copies > 1:
        print(f"          {sum(shares.values()) / 1e6:.1f} MB distinct, taken {copies} times under new names")


if __name__ == "__main__":
    main()
