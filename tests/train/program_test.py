"""The program fleetfit-train: files in, files out, refusals, interruption."""
import json
import signal
import subprocess
import time

import cli


def rows(count, name="conv2d"):
    values = [[i % 7 + 1, i % 11 + 1] for i in range(count)]
    return {"name": name, "features": ["a", "b"], "rows": values, "ms": [0.5 + a * b for a, b in values]}


class Files(cli.Case):
    def write(self, document):
        path = self.folder / "samples.json"
        path.write_text(json.dumps(document))
        return path

    def write_rows(self, *sets):
        return self.write({"type": "training-rows", "version": 1, "sets": list(sets)})


class Mlp(Files):
    def test_trains_a_network_for_each_set(self):
        out = self.folder / "out.json"
        summary = self.succeed_json("mlp", self.write_rows(rows(80), rows(30, "pooling")), "-o", out, "--trials", 1, "--epochs", 5)
        self.assertEqual([m["name"] for m in summary["models"]], ["conv2d", "pooling"])
        self.assertFalse(summary["interrupted"])
        written = json.loads(out.read_text())
        self.assertEqual((written["type"], written["version"]), ("trained-models", 1))
        self.assertEqual([m["model"]["type"] for m in written["models"]], ["mlp", "mlp"])

    def test_gives_the_same_file_again(self):
        samples = self.write_rows(rows(40))
        for out, threads in ("a", 1), ("b", 2):
            self.succeed("mlp", samples, "-o", self.folder / out, "--trials", 2, "--epochs", 3, "--seed", 4, "--threads", threads)
        self.assertEqual((self.folder / "a").read_text(), (self.folder / "b").read_text())

    def test_refuses_bad_input(self):
        out = self.folder / "out.json"
        self.refuse("mlp", self.folder / "nothing.json", "-o", out, naming="nothing.json")
        self.refuse("mlp", self.write({"type": "other", "version": 1}), "-o", out, naming="type")
        self.refuse("mlp", self.write_rows(), "-o", out, naming="no sets")
        self.refuse("mlp", self.write_rows(dict(rows(2), ms=[1, -1])), "-o", out, naming="sets[0].ms: row 1: -1")
        self.refuse("mlp", self.write_rows(rows(2)), naming="--output")
        self.refuse("mlp", self.write_rows(rows(2)), "-o", out, "--epochs", 0, naming="--epochs")
        self.refuse("mlp", self.write_rows(rows(2)), "-o", self.folder / "none" / "out.json", "--epochs", 1, naming="out.json")
        self.refuse(naming="verb")
        self.assertFalse(out.exists())

    def test_keeps_the_best_when_interrupted(self):
        out = self.folder / "out.json"
        samples = self.write_rows(rows(2000), rows(2000, "pooling"))
        process = subprocess.Popen([cli.program(), "mlp", samples, "-o", out, "--epochs", "100000", "--threads", "1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        while not holds_back(process.pid, signal.SIGINT):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(said, r"\Afleetfit: interrupted; [01] of 2 networks [^\n]*\n\Z")
        self.assertEqual(json.loads(out.read_text())["type"], "trained-models")


class GraphNetwork(Files):
    def test_is_trained(self):
        graphs = [{"name": str(i), "nodes": [[1, 0]] * (i % 5 + 1), "edges": [[0, i % 5]], "ms": i % 5 + 1} for i in range(40)]
        samples = self.write({"type": "training-graphs", "version": 1, "features": ["a", "b"], "graphs": graphs})
        out = self.folder / "out.json"
        summary = self.succeed_json("graph-network", samples, "-o", out, "--trials", 1, "--epochs", 5)
        self.assertGreater(summary["validation_percent"], 0)
        written = json.loads(out.read_text())
        self.assertEqual((written["type"], written["features"]), ("graph-network", ["a", "b"]))

    def test_refuses_bad_input(self):
        graph = {"nodes": [[1]], "edges": [[0, 1]], "ms": 1}
        samples = self.write({"type": "training-graphs", "version": 1, "features": ["a"], "graphs": [graph]})
        self.refuse("graph-network", samples, "-o", self.folder / "out.json", naming="graphs[0]: the edge from 0 to 1")


class Help(cli.Case):
    def test_shows_an_example(self):
        for verb in "mlp", "graph-network":
            self.assertIn(f"fleetfit-train {verb}", self.succeed(verb, "--help").stdout)


def holds_back(pid, number):
    """Whether the process has come so far that it deals with the signal itself. For a moment, threads hold back all signals when they start others."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            blocked = next(line for line in status if line.startswith("SigBlk:"))
    except (OSError, StopIteration):
        return False
    mask = int(blocked.split()[1], 16)
    return bool(mask >> (number - 1) & 1) and not mask >> (signal.SIGUSR1 - 1) & 1


if __name__ == "__main__":
    cli.main()
