"""The stub file says what the compiled module has: the same names with the same arguments."""
import ast
import pathlib
import re
import unittest

import cli
import fleetfit
from fleetfit import _native

STUB = ast.parse((pathlib.Path(fleetfit.__file__).parent / "_native.pyi").read_text(encoding="utf-8"))


def public(names):
    return {name for name in names if not name.startswith("_")}


def arguments_of(function):
    """The names of a bound function's arguments, from the signature that pybind11 writes."""
    signature = function.__doc__.splitlines()[0]
    inside = re.search(r"\((.*)\) ->", signature)[1]
    return re.findall(r"(?:^|, )(\w+): ", re.sub(r"\[[^][]*(?:\[[^][]*\][^][]*)*\]", "", inside))


class Stub(unittest.TestCase):
    def compare(self, nodes, owner):
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                with self.subTest(function=f"{owner}.{node.name}"):
                    self.assertEqual([one.arg for one in node.args.args], arguments_of(getattr(owner, node.name)))

    def test_functions_have_their_arguments(self):
        self.compare(STUB.body, _native)
        for node in STUB.body:
            if isinstance(node, ast.ClassDef):
                self.compare(node.body, getattr(_native, node.name))

    def test_nothing_is_missing(self):
        top = {node.name for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))} | {"version"}
        self.assertEqual(public(vars(_native)), top)
        for node in STUB.body:
            if isinstance(node, ast.ClassDef):
                self.assertEqual(public(vars(getattr(_native, node.name))), public(one.name for one in node.body), node.name)

    def test_everything_that_is_exported_has_a_docstring(self):
        for name in fleetfit.__all__:
            self.assertTrue(getattr(fleetfit, name).__doc__, name)


if __name__ == "__main__":
    cli.main()
