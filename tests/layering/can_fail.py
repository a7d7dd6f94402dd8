#!/usr/bin/env python3
"""Shows that a rule of layering.py can fail: it must find in the tree FOLDER just what FOLDER/expected.txt says.

usage: can_fail.py FOLDER
"""
import difflib
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1]).resolve()
checker = pathlib.Path(__file__).resolve().parent / "layering.py"
command = [sys.executable, checker, "."]
if not (folder / "docs/architecture.md").exists():
    command += ["--table", "../architecture.md"]

result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
expected = (folder / "expected.txt").read_text(encoding="utf-8")
difference = difflib.unified_diff(expected.splitlines(), result.stdout.splitlines(), "expected", "found", lineterm="")
problems = [*difference, *result.stderr.splitlines()]
if result.returncode != 1:
    problems.append(f"exit status {result.returncode}, expected 1")
print("\n".join(problems) or f"{folder.name}: found as expected")
sys.exit(1 if problems else 0)
