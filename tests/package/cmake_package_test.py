"""The installed library, as a project that uses it sees it: installs into an empty folder, builds examples/cpp there and runs them.

usage: cmake_package_test.py BUILD_FOLDER EXAMPLES COMPILER [unittest's options]
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, EXAMPLES, COMPILER = (pathlib.Path(sys.argv.pop(1)) for _ in range(3))


def run(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=300)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fleetfit-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        for component in ("library", "programs"):
            cls.need("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
        cls.need("cmake", "-S", EXAMPLES, "-B", cls.folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={cls.prefix}",
                 f"-DCMAKE_CXX_COMPILER={COMPILER}")
        cls.need("cmake", "--build", cls.folder / "build")
        cls.model = cls.folder / "model.onnx"
        cls.need(cls.prefix / "bin/fleetfit", "model", "zoo", "mobilenet_v2", "--width", 0.25, "--image", 32, "-o", cls.model)

    @classmethod
    def need(cls, *command):
        done = run(*command)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def example(self, name, *args):
        return self.need(self.folder / "build" / name, *args)

    def fleetfit_json(self, *args):
        return json.loads(self.need(self.prefix / "bin/fleetfit", *args, "--json"))

    def test_inspect_counts_what_the_program_counts(self):
        totals = self.fleetfit_json("model", "inspect", self.model)["totals"]
        last_line = self.example("inspect", self.model).splitlines()[-1]
        self.assertEqual(last_line, f"flops {totals['flops']} params {totals['params']}")

    def test_errors_are_one_line(self):
        done = run(self.folder / "build/inspect", self.folder / "missing.onnx")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Ainspect: [^\n]*missing\.onnx[^\n]*\n\Z")

    def test_measure_takes_the_installed_program_as_its_engine(self):
        text = self.example("measure", self.model, 0.3)
        low, high = map(float, re.search(r"95 %: ([\d.]+) to ([\d.]+)", text).groups())
        median = float(re.search(r"median ([\d.]+) ms", text)[1])
        self.assertLess(0, median)
        self.assertTrue(low <= median <= high, text)

    def test_search_keeps_its_budget(self):
        words = self.example("search", 100).split()
        found = dict(zip(words[::2], words[1::2]))
        design = self.fleetfit_json("space", "show", "nasbench201", found["design"])
        self.assertEqual(float(found["params"]), design["params"])
        self.assertAlmostEqual(float(found["mflops"]), design["flops"] / 1e6, 3)
        self.assertLessEqual(float(found["mflops"]), 100)

    def configure(self, find):
        project = self.folder / "small"
        project.mkdir(exist_ok=True)
        (project / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(small LANGUAGES CXX)\nfind_package(fleetfit {find})\n"
            'get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)\nmessage(STATUS "targets ${targets}")\n', encoding="utf-8")
        shutil.rmtree(project / "build", ignore_errors=True)
        return run("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   f"-DCMAKE_CXX_COMPILER={COMPILER}")

    def test_a_component_brings_what_it_uses_and_no_more(self):
        done = self.configure("0.1 REQUIRED COMPONENTS cost")
        self.assertEqual(done.returncode, 0, done.stderr)
        targets = re.search(r"targets (\S*)", done.stdout)[1].split(";")
        self.assertEqual({name for name in targets if name.startswith("fleetfit::")},
                         {"fleetfit::fleetfit", "fleetfit::program", "fleetfit::core", "fleetfit::graph", "fleetfit::cost"})
        self.assertNotIn("SQLite::SQLite3", targets)

    def test_a_component_that_does_not_exist_is_named(self):
        done = self.configure("REQUIRED COMPONENTS nosuch")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no module 'nosuch'", done.stderr)

    def test_another_minor_version_is_refused(self):
        done = self.configure("0.0 REQUIRED")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('compatible with requested version "0.0"', " ".join(done.stderr.split()))


if __name__ == "__main__":
    unittest.main()
