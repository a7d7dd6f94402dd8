"""Numbers that make no sense: refused where they are read, and drawn in little space where they are allowed."""
import itertools
import sqlite3

import cli
import mutated_files

MOST_S = 60
MOST_MEMORY = 1 << 30


class OddNumbers(cli.Case):
    def setUp(self):
        super().setUp()
        designs = ["".join(digits) for digits in itertools.product("1234", repeat=6)][::41]
        self.rows = [["ops", "phone", "board", "accuracy"], *([d, f"{sum(map(int, d))}", f"{2 * sum(map(int, d)) + int(d[1])}", f"{60 + int(d[0])}"] for d in designs)]
        (self.folder / "fleet.yaml").write_text("space: nasbench201\naccuracy: table:table.csv#accuracy\nlatency: times.csv\ndevices:\n  - {name: phone, budget: {latency: 14 ms}}\n  - {name: board, budget: {latency: 31 ms}}\n")

    def write(self, name, columns, row=0, column=0, cell=None):
        rows = [list(one) for one in self.rows]
        if cell is not None:
            rows[row][column] = cell
        (self.folder / name).write_text("".join(",".join(one[i] for i in columns) + "\n" for one in rows))

    def run_small(self, *words):
        run = mutated_files.Run([cli.program(), *map(str, words)], self.folder, MOST_S)
        self.assertFalse(run.was_slow)
        self.assertLess(run.memory, MOST_MEMORY)
        return run

    def expect_refused(self, run, *parts):
        error = run.stderr.decode()
        self.assertEqual(run.status, 2, error)
        for part in parts:
            self.assertIn(part, error)
        self.assertEqual(error.count("\n"), 1, error)

    def test_of_accuracy_are_refused_with_their_row(self):
        self.write("times.csv", [0, 1, 2])
        for cell in ("1e20", "1e7", "-1e20"):
            self.write("table.csv", [0, 3], 7, 3, cell)
            place = ("table.csv:8:8", "column 'accuracy'", f"{cell} is no accuracy")
            self.expect_refused(self.run_small("--store", "memory:", "fit", "fleet.yaml", "-o", "out"), *place)
            self.expect_refused(self.run_small("search", "--space", "nasbench201", "--latency", "table:times.csv#phone", "--accuracy", "table:table.csv#accuracy", "--pareto"), *place)

    def test_of_latency_are_refused_with_their_row(self):
        self.write("table.csv", [0, 3])
        for cell, why in (("1e20", "longer than a day"), ("1e-320", "less than"), ("0", "not positive")):
            self.write("times.csv", [0, 1, 2], 3, 1, cell)
            place = ("times.csv:4:8", "column 'phone'", f"{cell} is", why)
            self.expect_refused(self.run_small("--store", "memory:", "fit", "fleet.yaml", "-o", "out"), *place)
            self.expect_refused(self.run_small("transfer", "srcc", "times.csv", "--space", "nasbench201"), *place)

    def test_of_an_objective_are_drawn(self):
        values = (-1e308, 1e308, -1e-320, 0.0, 1.7e308, 5.0)
        with sqlite3.connect(self.folder / "store.db") as store:
            store.executescript((cli.SOURCE / "tests/cli/formats/store.sql").read_text())
            store.executescript("PRAGMA application_id = 1717987700; PRAGMA user_version = 3;")
            for trial, value in enumerate(values):
                store.execute("UPDATE levels SET accuracy = ? WHERE trial = ?", (value, trial))
        run = self.run_small("--store", "sqlite:store.db", "study", "report", "small", "-o", "report.html")
        self.assertEqual(run.status, 0, run.stderr)
        page = (self.folder / "report.html").read_text()
        self.assertLess(len(page), 300_000)
        for word in ('="nan', '="inf', '="-nan', '="-inf', "NaN"):
            self.assertNotIn(word, page)


class OddTexts(cli.Case):
    def error_of(self, *words):
        run = mutated_files.Run([cli.program(), *words], self.folder, MOST_S)
        self.assertEqual(run.status, 2)
        error = run.stderr.decode()  # fails on what is no UTF-8
        self.assertEqual(error.count("\n"), 1)
        self.assertLessEqual(len(error), 1001)
        self.assertTrue(error[:-1].isprintable(), ascii(error))
        return error

    def test_in_files_and_flags_are_shown(self):
        (self.folder / "t.csv").write_bytes(b"ops,phone\n421211,1\n421212,1\xff\x1b[31m2\xc2\x9b\xe2\x80\xae\n")
        self.assertIn("t.csv:3:8", self.error_of("transfer", "srcc", "t.csv", "--space", "nasbench201"))
        self.assertIn("\\xff", self.error_of(b"--store", b"memory:", b"study", b"show", b"no\xffsuch"))
        self.assertIn("\\xff", self.error_of(b"model", b"inspect", b"\xff\xfe.onnx"))

    def test_that_are_long_keep_both_ends_of_the_message(self):
        (self.folder / "t.csv").write_text("ops,phone\n421211,1\n421212,%s\n" % ("9" * 50_000))
        self.assertIn("t.csv:3:8", self.error_of("transfer", "srcc", "t.csv", "--space", "nasbench201"))
        error = self.error_of("--store", "memory:", "study", "show", "x" * 50_000)
        self.assertIn("xxx…xxx", error)


if __name__ == "__main__":
    cli.main()
