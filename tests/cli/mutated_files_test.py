"""Files that are broken in all ways: whatever they hold, the program ends soon, with status 0, 1 or 2, one clear line of error, and numbers that are numbers.

FLEETFIT_MUTATIONS says how many (300), FLEETFIT_SEED which. What is found is kept in $FLEETFIT_MUTANTS, if that names a folder.
"""
import concurrent.futures
import dataclasses
import itertools
import os
import pathlib
import random
import shutil
import sqlite3
import tempfile
import unittest

import cli
import mutated_files
import tiny_bundle

CORPUS = cli.SOURCE / "fuzz" / "corpus"
FORMATS = pathlib.Path(__file__).parent / "formats"
MOST_S = 20


@dataclasses.dataclass
class Reader:
    """A command that reads a file. In its words FILE is the mutated file, HERE the folder that it is in, SEEDS that of all good ones."""

    seed: pathlib.Path
    words: list
    beside: list = dataclasses.field(default_factory=list)  # good files that lie in the same folder

    def command(self, file, here, seeds):
        places = {"FILE": str(file), "HERE": str(here), "SEEDS": str(seeds)}
        words = []
        for word in map(str, self.words):
            for name, place in places.items():
                word = word.replace(name, place)
            words.append(word)
        return [cli.program(), "--json", *words]


TRAINED = """name: trained
workload: {command: [python3, FOLDER/train.py]}
parameters: {model: {width: {values: [1, 2]}}}
objective: {maximize: accuracy}
budget: {kind: epochs, min_epochs: 1, max_epochs: 2, eta: 2, max_trials: 2}
algorithm: {model: {sampler: grid, scheduler: asha}}
"""


def latency(design, slope):
    return round(2 + slope * sum(int(digit) * (1 + 0.1 * place) for place, digit in enumerate(design)), 4)


def make_seeds(folder):
    """Small good files of every kind."""
    designs = ["".join(digits) for digits in itertools.product("1234", repeat=6)][::41]
    rows = [f"{d},{latency(d, 1)},{latency(d, 2.1)},{latency(d, 0.7)},{60 + latency(d, 1) / 2}" for d in designs]
    (folder / "table.csv").write_text("\n".join(["ops,phone,board,camera,accuracy", *rows]) + "\n")
    (folder / "features.csv").write_text("device,ref:nasbench201@1:111111,ref:nasbench201@1:333333\nphone,9.5,21\nboard,18.2,44\nnew,12,30\n")
    (folder / "fleet.yaml").write_text("space: nasbench201\naccuracy: table:table.csv#accuracy\nlatency: table.csv\ndevices:\n"
                                       "  - {name: phone, budget: {latency: 20 ms}}\n  - {name: board, budget: {latency: 45 ms}}\n")
    (folder / "study.yaml").write_text("name: small\nparameters: {training: {x: {range: [-5, 10]}, y: {range: [1, 15], log: true}}, model: {z: {values: [1, 2, 4]}}}\n"
                                       "objective: {minimize: value}\nbudget: {kind: epochs, max_epochs: 1, max_trials: 12}\nalgorithm: {model: random}\n")
    (folder / "trained.yaml").write_text(TRAINED.replace("FOLDER", str(folder)))
    (folder / "train.py").write_text("import json\nprint(json.dumps({'result': {'accuracy': 0.5}}))\n")
    (folder / "input.npy").write_bytes(tiny_bundle.npy([0.5] * 50, (1, 5, 5, 2)))
    tiny_bundle.make(folder)
    cli.run("--store", "memory:", "adapt", folder / "net.ffb", "--data", f"idx:{folder}", "--budget-ms", 1000, "--samples", 50, "--save-table", folder / "block_table.json", "-o", folder / "pool.json")
    cli.run("transfer", "adapt", folder / "table.csv", "--space", "nasbench201", "--proxy", "phone", "--target", "board", "--samples", 20, "--validation", 10, "-o", folder / "adapted.json")
    cli.run("model", "zoo", "squeezenet1_1", "--width", 0.25, "--image", 32, "--classes", 10, "-o", folder / "squeeze.onnx")
    connection = sqlite3.connect(folder / "store.db")
    connection.executescript((FORMATS / "store.sql").read_text())
    connection.executescript("PRAGMA application_id = 1717987700; PRAGMA user_version = 3;")
    connection.close()


def files_of(kind):
    return sorted(path for path in (CORPUS / kind).iterdir() if path.is_file())


def readers(seeds):
    """Every reader of files that a command line can name."""
    table = ["--space", "nasbench201"]
    sources = [*table, "--latency", "table:FILE#phone", "--accuracy", "table:FILE#accuracy"]
    store = ["--store", "sqlite:FILE"]
    images = ["--store", "memory:", "run", "SEEDS/net.ffb", "--pool", "SEEDS/pool.json", "--budget-ms", 1000, "--seconds", 0.05, "--data"]
    both = [seeds / "t10k-images-idx3-ubyte", seeds / "t10k-labels-idx1-ubyte", seeds / "train-images-idx3-ubyte", seeds / "train-labels-idx1-ubyte"]
    every = [Reader(path, ["model", "inspect", "FILE"]) for kind in ("onnx", "engine", "tflite", "ncnn") for path in files_of(kind)]
    every += [Reader(path, ["model", "run", "FILE", "--random-inputs", "-o", "HERE/out"]) for kind in ("onnx", "engine", "tflite") for path in files_of(kind)]
    every += [Reader(path, ["model", "convert", "FILE", "HERE/out.onnx"]) for path in files_of("onnx")]
    every += [Reader(path, ["kernels", "FILE", "--gpu", "mali-g76"]) for path in files_of("engine")]
    every += [Reader(path, ["--store", "memory:", "measure", "FILE", "--max-time", 0.05]) for path in files_of("engine")[:4]]
    every += [Reader(path, ["kernels", "SEEDS/squeeze.onnx", "--rules", "FILE"]) for path in files_of("kernel_rules")]
    every += [Reader(FORMATS / "predictor.json", ["predict", "run", "FILE", "SEEDS/squeeze.onnx"])]
    every += [Reader(path, ["predict", "run", "FILE", "SEEDS/squeeze.onnx"]) for path in files_of("predictor")]
    every += [Reader(seeds / "table.csv", ["transfer", "srcc", "FILE", *table]),
              Reader(seeds / "table.csv", ["transfer", "select", "FILE", *table]),
              Reader(seeds / "table.csv", ["transfer", "adapt", "FILE", *table, "--proxy", "phone", "--target", "board", "--samples", 20, "--validation", 10]),
              Reader(seeds / "table.csv", ["transfer", "fewshot", "FILE", *table, "--references", "phone,camera", "--target", "board", "--samples", 5]),
              Reader(seeds / "table.csv", ["search", *sources, "--budget-ms", 12, "--strategy", "exhaustive", "--plot", "HERE/plot.html"]),
              Reader(seeds / "table.csv", ["search", *sources, "--pareto", "--population", 40, "--generations", 3]),
              Reader(seeds / "adapted.json", ["search", *table, "--latency", "adapted:FILE", "--accuracy", "table:SEEDS/table.csv#accuracy", "--budget-ms", 30, "--population", 40, "--generations", 3]),
              Reader(seeds / "features.csv", ["learn", "apply", CORPUS / "learned" / "nasbench201.json", "--device-features", "FILE", "--device", "new", "--budget-ms", 1000]),
              Reader(CORPUS / "learned" / "nasbench201.json", ["learn", "apply", "FILE", "--device-features", "SEEDS/features.csv", "--device", "new", "--budget-ms", 1000])]
    every += [Reader(seeds / "net.ffb", ["bundle", "show", "FILE"]), Reader(seeds / "net.ffb", ["bundle", "verify", "FILE"])]
    every += [Reader(path, ["bundle", "verify", "FILE"]) for path in files_of("bundle") if path.suffix == ".ffb"]
    every += [Reader(seeds / "pool.json", ["--store", "memory:", "run", "SEEDS/net.ffb", "--pool", "FILE", "--budget-ms", 1000, "--seconds", 0.05, "--data", "idx:SEEDS"]),
              Reader(seeds / "block_table.json", ["--store", "memory:", "adapt", "SEEDS/net.ffb", "--data", "idx:SEEDS", "--budget-ms", 1000, "--samples", 20, "--table", "FILE", "-o", "HERE/p.json"])]
    every += [Reader(path, [*images, "idx:HERE"], both) for path in both]
    every += [Reader(seeds / "fleet.yaml", ["--store", "memory:", "fit", "FILE", "-o", "HERE/out"], [seeds / "table.csv"]),
              Reader(seeds / "table.csv", ["--store", "memory:", "fit", "HERE/fleet.yaml", "-o", "HERE/out"], [seeds / "fleet.yaml"])]
    every += [Reader(path, ["--store", "memory:", "study", "create", "FILE"]) for path in [seeds / "study.yaml", seeds / "trained.yaml", *files_of("study")]]
    every += [Reader(seeds / "trained.yaml", ["--store", "sqlite:HERE/s.db", "tune", "FILE"])]
    every += [Reader(seeds / "store.db", [*store, *words.split()]) for words in
              ("study list", "study show small", "study best small", "device list", "token list", "study report small -o HERE/r.html", "study export small -o HERE/e.csv", "store copy sqlite:FILE sqlite:HERE/c.db")]
    every += [Reader(path, ["--store", "memory:", "study", "import", "FILE", "--study", "mixed", "--name", "here"]) for path in files_of("optuna")]
    every += [Reader(path, ["model", "run", CORPUS / "onnx" / "conv.onnx", "--input", "x=FILE", "-o", "HERE/out"]) for path in [seeds / "input.npy", *files_of("npy")]]
    return every


class MutatedFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="fleetfit-mutants-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.seeds = cls.folder / "seeds"
        cls.seeds.mkdir()
        make_seeds(cls.seeds)
        cls.readers = readers(cls.seeds)
        cls.places = itertools.count()

    def try_one(self, reader, data, numbers):
        here = self.folder / f"try{next(self.places)}"
        here.mkdir()
        try:
            for good in reader.beside:
                shutil.copy(good, here)
            file = here / reader.seed.name
            file.write_bytes(data)
            run = mutated_files.Run(reader.command(file, here, self.seeds), here, MOST_S)
            return run, mutated_files.fault_of(run, numbers)
        finally:
            shutil.rmtree(here, ignore_errors=True)

    def numbers(self, reader):
        """Where the program prints numbers for the good file."""
        run, _ = self.try_one(reader, reader.seed.read_bytes(), set())
        return mutated_files.numbers_of(run.stdout) if run.status == 0 and run.stdout.startswith((b"{", b"[")) else set()

    def keep(self, reader, data, seed):
        if "FLEETFIT_MUTANTS" in os.environ:
            folder = pathlib.Path(os.environ["FLEETFIT_MUTANTS"]) / str(seed)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / reader.seed.name).write_bytes(data)
            (folder / "command").write_text(" ".join(map(str, reader.words)) + "\n")

    def test_good_files_are_no_fault(self):
        read = set()
        for reader in self.readers:
            with self.subTest(file=reader.seed.name, command=" ".join(map(str, reader.words))):
                run, fault = self.try_one(reader, reader.seed.read_bytes(), set())
                self.assertEqual(fault, "", run.stderr)
                if run.status == 0:
                    read.add(self.verb(reader))
        # Some of the corpus are bad files; but what is mutated has to be a good one for every verb.
        self.assertEqual({self.verb(reader) for reader in self.readers} - read, set())

    @staticmethod
    def verb(reader):
        """The command without its files: what reads is one thing, whatever it reads."""
        return " ".join(str(word) for word in reader.words if not isinstance(word, pathlib.Path))

    def test_mutations(self):
        first = int(os.environ.get("FLEETFIT_SEED", 1))
        seeds = range(first, first + int(os.environ.get("FLEETFIT_MUTATIONS", 300)))
        numbers = {}
        faults = []

        def one(seed):
            choose = random.Random(seed)
            place = seed % len(self.readers)
            reader = self.readers[place]
            if place not in numbers:
                numbers[place] = self.numbers(reader)
            data = mutated_files.mutate(reader.seed.read_bytes(), choose)
            run, fault = self.try_one(reader, data, numbers[place])
            if fault:
                self.keep(reader, data, seed)
                faults.append(f"seed {seed}, {reader.seed.name}, {' '.join(map(str, reader.words))}: {fault}\n  {run.stderr[-300:]!r}")

        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            list(pool.map(one, seeds))
        self.assertEqual(faults, [], f"{len(faults)} of {len(seeds)} mutations:\n" + "\n".join(faults[:40]))


if __name__ == "__main__":
    cli.main()
