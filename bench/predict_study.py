#!/usr/bin/env python3
"""How well latency is predicted: methods x numbers of training networks x devices of this machine, as in Li, Paolieri and Golubchik.

Four steps, each of which can be stopped and goes on where it was:
    bench/predict_study.py measure [--networks 900]     designs of the space icpe and the zoo, on six devices one after the other
    bench/predict_study.py noise                        how far sessions of the same network on the same device are from each other
    bench/predict_study.py report [-o study.json]       trains, tests, prints tables for docs/benchmarks.md
    bench/predict_study.py intervals                    how many designs lie inside of the intervals of the report's small training sets: of all designs that no set
                                                        holds, as a hundred tell a share of 0.9 within 0.06 only
Every network is measured in several sessions that lie apart, of which the fastest counts: a predictor cannot predict a neighbour's work on the
machine. The machine should have nothing else to do while it measures.
"""
import argparse
import collections
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEVICES = {  # name: how it is added; those of one thread leave a core for other work
    "engine-1": ["--runtime", "xnnpack", "--threads", "1", "--cores", "0"],  # not auto: it would time the candidates of every new shape
    "engine-2": ["--runtime", "xnnpack", "--threads", "2"],
    "engine-int8-1": ["--runtime", "onednn", "--threads", "1", "--precision", "int8", "--cores", "0"],
    "ort-1": ["--runtime", "onnxruntime", "--threads", "1", "--cores", "0"],
    "ort-2": ["--runtime", "onnxruntime", "--threads", "2"],
    "ort-int8-1": ["--runtime", "onnxruntime", "--threads", "1", "--precision", "int8", "--cores", "0"],
}
METHODS = "lasso,rf,gbdt,auto,mlp"  # the slowest to train comes last
SIZES = (900, 100, 30)
WHOLE = ("engine-1", "ort-1")  # devices that are measured with all sizes, unless --whole is given; the others with the two small ones
TEST = 100  # designs after those of the largest training set
ZOO = ("alexnet", "densenet121", "efficientnet_b0", "efficientnet_lite0", "ghostnet_x1_0", "googlenet", "lcnet_x1_0", "mnasnet0_5", "mnasnet1_0",
       "mobilenet_v1_x0_5", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf",
       "regnet_y_800mf", "resnet18", "resnet34", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "squeezenet1_0",
       "squeezenet1_1", "wide_resnet50_2")


class Study:
    def __init__(self, args):
        self.args = args
        self.folder = pathlib.Path(args.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.devices = args.devices.split(",")

    def fleetfit(self, *args, ok=(0,)):
        command = [self.args.program, "--store", f"sqlite:{self.folder / 'study.db'}", "--json", *map(str, args)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode not in ok:
            sys.exit(f"predict_study: {' '.join(command)} ended with status {done.returncode}")
        return json.loads(done.stdout)

    def zoo(self):
        listed = {entry["name"] for entry in self.fleetfit("model", "zoo")}
        files = []
        for name in ZOO:
            if name not in listed:
                print(f"predict_study: the zoo has no {name}", file=sys.stderr)
                continue
            files.append(pathlib.Path(self.args.zoo or self.folder) / f"{name}.onnx")
            if not files[-1].exists():
                self.fleetfit("model", "zoo", name, "-o", files[-1])
        return files

    def measure(self):
        known = {device["name"] for device in self.fleetfit("device", "list")}
        for name in self.devices:
            if name not in known:
                self.fleetfit("device", "add", name, *DEVICES[name])
        for name in self.devices:
            largest = self.args.networks if self.args.whole or name in WHOLE else min(SIZES[1], self.args.networks)
            if largest == max(SIZES):
                # What teaches and what tests in turns: a machine may be faster half an hour later.
                self.measure_designs(name, 0, largest + TEST)
            else:
                self.measure_designs(name, 0, largest)
                self.measure_designs(name, max(SIZES), TEST)
            self.measure_zoo(name)

    def measure_designs(self, device, first, count):
        self.fleetfit("measure", "--space", "icpe", "--first", first, "--samples", count, "--device", device, "--ops", "--max-time",
                      self.args.max_time, ok=(0, 1))
        print(f"{time.strftime('%T')} designs {first} to {first + count - 1} on {device}", file=sys.stderr, flush=True)

    def measure_zoo(self, device):
        """By a predictor of the zoo, which is of no use for the study."""
        self.fleetfit("predict", "train", "--device", device, "--method", "lasso", *self.zoo(), "--max-time", self.args.zoo_time, "-o",
                      self.folder / f"{device}-zoo.json")
        print(f"{time.strftime('%T')} the zoo on {device}", file=sys.stderr, flush=True)

    def noise(self):
        """Of each session, how far it is from the fastest of the others; of the fastest, how far those of two halves are apart."""
        store = sqlite3.connect(f"file:{self.folder / 'study.db'}?mode=ro", uri=True)
        times = collections.defaultdict(list)
        for device, model, median in store.execute("SELECT device, model_hash, median_ms FROM measurements WHERE median_ms IS NOT NULL ORDER BY id"):
            times[device, model].append(median)
        print("| device | networks | sessions | one session | fastest of half of them |\n|---|---|---|---|---|")
        for name in self.devices:
            several = [own for (device, _), own in times.items() if device == name and len(own) >= 4]
            if not several:
                continue
            single = [abs(one / min(own[:i] + own[i + 1:]) - 1) for own in several for i, one in enumerate(own)]
            halves = [abs(min(own[::2]) / min(own[1::2]) - 1) for own in several]
            print(f"| {name} | {len(several)} | {statistics.mean(map(len, several)):.1f} | {100 * statistics.mean(single):.1f} % | {100 * statistics.mean(halves):.1f} % |")

    def rows(self):
        files = self.zoo()
        for method in self.args.methods.split(","):
            for device in self.devices:
                for size in self.sizes(device):
                    yield self.row(device, size, method, files)

    def sizes(self, device):
        if self.args.sizes:
            return [int(size) for size in self.args.sizes.split(",")]
        return SIZES if self.args.whole or device in WHOLE else SIZES[1:]

    def row(self, device, size, method, files):
        """Training sets are drawn several times, if asked for: chance has a part in what they say, and in how wide their intervals are."""
        draws = [self.draw(device, size, method, files, *where) for where in self.draws(size)]
        return {"device": device, "networks": size, "method": method, "draws": len(draws), "space": mean_of([draw["space"] for draw in draws]),
                "zoo": mean_of([draw["zoo"] for draw in draws]), "of_each": draws}

    def draws(self, size):
        """Where training sets begin and where the designs that test them do. The largest set leaves little: its second is tested on what the first began with.
        Each of the smaller ones has test designs of its own, as long as there are some that no set of its size holds."""
        if size == max(SIZES):
            return [(0, self.args.test_first), (self.args.test, 0)][:self.args.draws]
        begins = [first for first in range(0, max(SIZES) - size + 1, size)][:self.args.draws]
        free = max((self.args.test_first - begins[-1] - size) // self.args.test, 0) + 1
        return [(first, self.args.test_first - i % free * self.args.test) for i, first in enumerate(begins)]

    def draw(self, device, size, method, files, first, test_first):
        predictor = self.folder / f"{device}-{method}-{size}{f'-from-{first}' if first else ''}.json"
        stored = ["--stored"] if self.args.stored else []
        trained = self.fleetfit("predict", "train", "--device", device, "--method", method, "--space", "icpe", "--first", first, "--samples", size, *stored, "-o",
                                predictor)
        space = self.fleetfit("predict", "eval", predictor, "--space", "icpe", "--samples", self.args.test, "--first", test_first, *stored)
        zoo = self.fleetfit("predict", "eval", predictor, *files, "--max-time", self.args.zoo_time, *stored)
        return {"first": first, "cross_validation": trained["cross_validation_mape"], "space": summary(space), "zoo": summary(zoo)}

    def intervals(self):
        """With the predictors of the last report."""
        print("| device | method | networks | training sets | designs | inside | of each set |\n|---|---|---|---|---|---|---|")
        rows = []
        for device in self.devices:
            for method in self.args.methods.split(","):
                for size in SIZES[1:]:
                    predictors = sorted(self.folder.glob(f"{device}-{method}-{size}.json")) + sorted(self.folder.glob(f"{device}-{method}-{size}-from-*.json"))
                    if not predictors:
                        continue
                    shares = [self.fleetfit("predict", "eval", predictor, "--space", "icpe", "--samples", self.args.test, "--first", self.args.test_first,
                                            "--stored")["coverage90"] for predictor in predictors]
                    rows.append({"device": device, "method": method, "networks": size, "inside": statistics.mean(shares), "of_each": shares})
                    print(f"| {device} | {method} | {size} | {len(shares)} | {self.args.test} | {statistics.mean(shares):.2f} | {min(shares):.2f} to {max(shares):.2f} |", flush=True)
        self.write(rows)

    def write(self, rows):
        if self.args.output:
            pathlib.Path(self.args.output).write_text(json.dumps(rows, indent=1))

    def report(self):
        rows = []
        print("| device | networks | method | icpe: error | in interval | zoo: error | in interval |\n|---|---|---|---|---|---|---|")
        for row in self.rows():
            rows.append(row)
            space, zoo = row["space"], row["zoo"]
            print(f"| {row['device']} | {row['networks']} | {row['method']} | {space['mape']:.1f} % | {space['coverage90']:.2f} "
                  f"| {zoo['mape']:.1f} % | {zoo['coverage90']:.2f} |", flush=True)
        self.write(rows)


def summary(evaluation):
    return {key: evaluation[key] for key in ("models", "mape", "within_5pct", "within_10pct", "coverage90")}


def mean_of(summaries):
    return {key: statistics.mean(one[key] for one in summaries) for key in summaries[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("measure", "noise", "report", "intervals"))
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/fleetfit"))
    parser.add_argument("--folder", default=str(ROOT / "build/predict-study"))
    parser.add_argument("--devices", default=",".join(DEVICES))
    parser.add_argument("--networks", type=int, default=max(SIZES), help="designs to learn from")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--sizes", help="of training sets in the report, if not all were measured")
    parser.add_argument("--draws", type=int, default=1, help="training sets of each size, the smaller ones as far as they do not overlap; told is the mean")
    parser.add_argument("--test", type=int, default=TEST, help="designs to test on")
    parser.add_argument("--test-first", type=int, default=max(SIZES), help="number of the first of them")
    parser.add_argument("--whole", action="store_true", help="the largest training set on all devices: three hours")
    parser.add_argument("--max-time", type=float, default=1, help="seconds for each design on each device")
    parser.add_argument("--zoo-time", type=float, default=6, help="the same for networks of the zoo, which are larger")
    parser.add_argument("--zoo", help="folder for the networks of the zoo, if not that of the study")
    parser.add_argument("--stored", action="store_true", help="report what the store has, on another machine than it was measured on")
    parser.add_argument("-o", "--output")
    study = Study(parser.parse_args())
    getattr(study, study.args.step)()


if __name__ == "__main__":
    main()
