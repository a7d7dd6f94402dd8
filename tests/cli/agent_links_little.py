#!/usr/bin/env python3
"""Fails when the agent loads what a device need not have: libtorch, a data base, what fits predictors.

usage: agent_links_little.py PROGRAM
       agent_links_little.py --can-fail     looks at two lists made up for it
"""
import re
import subprocess
import sys

TOO_MUCH = re.compile(r"\blib(torch\w*|c10\w*|caffe2\w*|sqlite3|pq|xgboost|onnxruntime\w*|python3\S*)\.so")

LITTLE = """\
\tlibonnx.so.1 => /usr/lib/x86_64-linux-gnu/libonnx.so.1 (0x00007f0a1c000000)
\tlibc.so.6 => /usr/lib/x86_64-linux-gnu/libc.so.6 (0x00007f0a1b000000)
"""
MUCH = LITTLE + """\
\tlibsqlite3.so.0 => /usr/lib/x86_64-linux-gnu/libsqlite3.so.0 (0x00007f0a10000000)
\tlibpq.so.5 => not found
"""


def too_much(listing):
    """Names in the output of ldd that a device need not have."""
    return sorted({line.split()[0] for line in listing.splitlines() if TOO_MUCH.search(line)})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--can-fail":
        return 0 if (too_much(LITTLE), too_much(MUCH)) == ([], ["libpq.so.5", "libsqlite3.so.0"]) else 1
    listing = subprocess.run(["ldd", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    if "libc.so" not in listing:
        print(f"ldd shows no libraries of {sys.argv[1]}:\n{listing}")
        return 1
    found = too_much(listing)
    print(f"{sys.argv[1]} loads {', '.join(found)}" if found else f"{len(listing.splitlines())} libraries, all of which it needs")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
