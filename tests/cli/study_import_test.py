"""fleetfit study import: a study of Optuna goes on here; bad input."""
import pathlib
import sqlite3

import cli

SQL = pathlib.Path(__file__).parent.parent / "store/databases/optuna3.sql"


class Import(cli.Case):
    def setUp(self):
        super().setUp()
        self.store = ["--store", f"sqlite:{self.folder}/s.db"]
        self.file = self.folder / "optuna.db"
        with sqlite3.connect(self.file) as database:
            database.executescript(SQL.read_text())

    def bring_in(self, *flags):
        return self.succeed(*self.store, "study", "import", self.file, *flags)

    def test_says_what_it_brought_in(self):
        self.assertEqual(self.bring_in("--study", "mixed").stdout,
                         "mixed: 8 trials: 5 finished, 1 stopped, 2 failed\n"
                         "2 left out, which had not ended or have other parameters than the rest\n")

    def test_the_study_can_be_asked_on(self):
        imported = self.parse_json(self.bring_in("--study", "mixed", "--name", "here", "--json"))
        self.assertEqual((imported["name"], imported["finished"], imported["left_out"]), ("here", 5, 2))
        best = self.parse_json(self.succeed(*self.store, "study", "best", "here", "--json"))
        self.assertEqual((best["trial"], best["accuracy"]), (7, 0.9375))
        asked = self.parse_json(self.succeed(*self.store, "study", "ask", "here", "--json"))
        self.assertEqual(asked["trial"], 8)
        self.assertIn(asked["params"]["dropout"], (0.0, 0.1, 0.2, 0.3, 0.4, 0.5))

    def test_writes_the_study_file(self):
        yaml = self.folder / "s.yaml"
        self.bring_in("--study", "pareto", "--command", "python3 train.py", "-o", yaml)
        self.assertIn('command: ["python3","train.py"]', yaml.read_text())

    def test_bad_input_is_one_line(self):
        for flags, line in [((), "it has 2 studies, name one of them: mixed, pareto"),
                            (("--study", "x"), "it has no study 'x'")]:
            outcome = cli.run(*self.store, "study", "import", self.file, *flags)
            self.assertEqual(outcome.status, 2, outcome)
            self.assertEqual(outcome.stderr, f"fleetfit: {self.file}: {line}\n")


if __name__ == "__main__":
    cli.main()
