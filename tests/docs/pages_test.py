"""What can be said of all pages without running anything: links lead somewhere, tutorials are tests, failing commands are noticed.

usage: pages_test.py ROOT [unittest's options]
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import run_page

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


class Pages(unittest.TestCase):
    def test_links_to_files_lead_somewhere(self):
        pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("runtimes/**/*.md")]
        self.assertGreater(len(pages), 20)
        for page in pages:
            for target in LINK.findall(page.read_text(encoding="utf-8")):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}, which is not there")

    def test_every_page_with_commands_to_run_is_a_test(self):
        tests = (ROOT / "tests/docs/CMakeLists.txt").read_text(encoding="utf-8")
        for page in ROOT.glob("docs/**/*.md"):
            if run_page.blocks(page):
                self.assertIn(f"fleetfit_page({page.relative_to(ROOT / 'docs').with_suffix('')})", tests)


class Runner(unittest.TestCase):
    def run_page(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(text, encoding="utf-8")
            return subprocess.run([sys.executable, "-B", run_page.__file__, page, "/bin/true"], capture_output=True, encoding="utf-8", timeout=60)

    def test_runs_blocks_in_one_shell_and_leaves_the_rest_alone(self):
        done = self.run_page("```sh\na=3\n```\ntext\n```text\nnosuch command\n```\n```sh\necho $a $((a + 1))\n```\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "3 4\n", ""))

    def test_names_the_line_that_fails(self):
        done = self.run_page("# Page\n\n```sh\ntrue\nfalse\necho on\n```\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn("line 5 of the page failed: false", done.stderr)

    def test_a_page_without_commands_is_an_error(self):
        self.assertNotEqual(self.run_page("# Page\n").returncode, 0)


if __name__ == "__main__":
    unittest.main()
