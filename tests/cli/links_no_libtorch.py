#!/usr/bin/env python3
"""Fails when a program loads libtorch: that would cost every call half a second and 160 MB.

usage: links_no_libtorch.py PROGRAM
       links_no_libtorch.py --can-fail     looks at two lists made up for it
"""
import re
import subprocess
import sys

TORCH = re.compile(r"\blib(torch\w*|c10\w*|caffe2\w*|ATen)\.so")

WITHOUT = """\
\tlinux-vdso.so.1 (0x00007ffd1a5f2000)
\tlibonnx.so.1 => /usr/lib/x86_64-linux-gnu/libonnx.so.1 (0x00007f0a1c000000)
\tlibstdc++.so.6 => /usr/lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f0a1b000000)
"""
WITH = WITHOUT + """\
\tlibtorch_cpu.so.1.13 => /usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13 (0x00007f0a10000000)
\tlibc10.so.1.13 => not found
"""


def torch_libraries(listing):
    """The names of libtorch's libraries in the output of ldd."""
    return sorted({line.split()[0] for line in listing.splitlines() if TORCH.search(line)})


def can_fail():
    found = (torch_libraries(WITHOUT), torch_libraries(WITH))
    print(found)
    return 0 if found == ([], ["libc10.so.1.13", "libtorch_cpu.so.1.13"]) else 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--can-fail":
        return can_fail()
    # ldd names what the program loads itself and what its libraries load in turn.
    listing = subprocess.run(["ldd", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    if "libc.so" not in listing:
        print(f"ldd shows no libraries of {sys.argv[1]}:\n{listing}")
        return 1
    found = torch_libraries(listing)
    if found:
        print(f"{sys.argv[1]} loads {', '.join(found)}")
        return 1
    print(f"{len(listing.splitlines())} libraries, none of them libtorch's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
