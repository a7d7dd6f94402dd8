"""Runs the commands of a page of the documentation as they are written: all blocks ```sh, one after the other, in an empty folder.

usage: run_page.py PAGE.md PROGRAM       PROGRAM is fleetfit, whose folder is put in front of PATH

Every command has to succeed; verbs that measure may end with status 1,
which says that a measurement did not settle on a busy machine, as the tutorials say.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Reads the commands from its input as a user would type them, and shows each.
PRELUDE = r"""
set -euo pipefail
fleetfit() {
  local status=0
  command fleetfit "$@" || status=$?
  case "$status $*" in
    "1 measure "* | "1 predict eval "* | "1 search bisect "* | "1 learn apply "* | "1 fit "* | "1 run "*) return 0 ;;
    *) return "$status" ;;
  esac
}
trap 'echo "line $LINENO of the page failed: $BASH_COMMAND" >&2' ERR
set -E
"""


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def script_of(page):
    """The blocks at the lines where they stand, so that bash names the page's line."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for match in BLOCK.finditer(text):
        first = text.count("\n", 0, match.start(1))
        for number, line in enumerate(match[1].splitlines()):
            lines[first + number] = line
    return "\n".join(lines) + "\n"


def run(page, program):
    with tempfile.TemporaryDirectory(prefix="fleetfit-tutorial-") as name:
        folder = pathlib.Path(name)
        tools, place = folder / "bin", folder / "work"
        tools.mkdir()
        place.mkdir()
        (tools / "python3").symlink_to(sys.executable)
        (folder / "prelude").write_text(PRELUDE, encoding="utf-8")
        script = folder / page.name
        script.write_text(script_of(page), encoding="utf-8")
        path = os.pathsep.join([str(tools), str(program.parent), os.environ["PATH"]])
        # The prelude is sourced first, so that lines of the page keep their numbers.
        return subprocess.run(["bash", "-c", 'source "$0"; source "$1"', folder / "prelude", script], cwd=place,
                              env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL).returncode


def main():
    args = sys.argv[1:]
    if len(args) != 2:
        sys.exit(__doc__)
    page, program = (pathlib.Path(one).resolve() for one in args)
    if not blocks(page):
        sys.exit(f"{page}: has no block ```sh")
    return run(page, program)


if __name__ == "__main__":
    sys.exit(main())
