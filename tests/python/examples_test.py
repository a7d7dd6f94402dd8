"""Runs every program of examples/python in an empty folder.

usage: examples_test.py FOLDER [unittest's options]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()


class Examples(unittest.TestCase):
    def test_run_as_they_are(self):
        programs = sorted(FOLDER.glob("*.py"))
        self.assertTrue(programs)
        for program in programs:
            with self.subTest(program=program.name), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-B", program], cwd=folder, capture_output=True, encoding="utf-8", timeout=100)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout)


if __name__ == "__main__":
    unittest.main()
