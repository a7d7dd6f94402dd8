#!/usr/bin/env python3
"""One Proxy's questions, asked of public tables: how well one proxy orders designs on other devices, and what the Pareto sets found through it are worth.

    bench/one_proxy_study.py FLEETFIT LATENCY_FOLDER ACCURACY.csv [--trials 20]

Prints the tables of docs/benchmarks.md: figure 15 (NAS-Bench-201, proxy pixel3, every device), the true hypervolume's share of the Pareto set that
`transfer run` finds there, and figure 28's question on FBNet and Once-for-all, each device as proxy in turn.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess

PROXY = "pixel3"
# Designs to adapt with, as in the paper's appendix B.3 and B.4 (60 for its hardest devices), and 20 more set aside.
SAMPLES = {"eyeriss": 20, "fpga": 20, "raspi4": 30}
OTHERS = 40
FBNET_SAMPLES = 80
VALIDATION = 20
ACCURACY = "c10_test_200ep"


class Study:
    def __init__(self, args):
        self.args = args

    def fleetfit(self, *args, ok=(0,)):
        done = subprocess.run([self.args.program, "--json", "--store", "memory:", *map(str, args)], stdout=subprocess.PIPE, text=True)
        if done.returncode not in ok:
            raise SystemExit(f"{args} ended with status {done.returncode}")
        return json.loads(done.stdout)

    def table(self, name):
        return pathlib.Path(self.args.latency) / f"{name}.csv"

    def devices(self, name, space):
        return self.fleetfit("transfer", "srcc", self.table(name), "--space", space)["devices"]

    def adapt(self, name, space, proxy, target, samples):
        return self.fleetfit("transfer", "adapt", self.table(name), "--space", space, "--proxy", proxy, "--target", target, "--samples", samples,
                             "--validation", VALIDATION, "--trials", self.args.trials)

    def nasbench(self):
        devices = [device for device in self.devices("nasbench201", "nasbench201") if device != PROXY]
        print("| target | samples | before | after | worst trial | hypervolume: proxy as it is | after `transfer run` | measured there |")
        print("|---|---|---|---|---|---|---|---|")
        before, after, plain, found = [], [], [], []
        for target in devices:
            samples = SAMPLES.get(target, OTHERS)
            row = self.adapt("nasbench201", "nasbench201", PROXY, target, samples)
            shares = self.hypervolume_shares(target, samples)
            before.append(row["srcc_before"])
            after.append(row["srcc_after"])
            plain.append(shares[0])
            found.append(shares[1])
            worst = min(trial["srcc_after"] for trial in row["trials"])
            print(f"| `{target}` | {samples} + {VALIDATION} | {row['srcc_before']:.3f} | {row['srcc_after']:.3f} | {worst:.3f} "
                  f"| {100 * shares[0]:.2f} % | {100 * shares[1]:.2f} % | {shares[2]} |", flush=True)
        print(f"| mean | | {statistics.mean(before):.3f} | {statistics.mean(after):.3f} | | {100 * statistics.mean(plain):.2f} % "
              f"| {100 * statistics.mean(found):.2f} % | |")

    def hypervolume_shares(self, target, samples):
        """Of the true one: the proxy's Pareto set as it is, and what transfer run finds, each with its latencies on the target; measurements of the latter."""
        truth = self.points(target)
        designs = self.points(PROXY)
        reference = (max(latency for latency, _ in truth.values()), min(accuracy for _, accuracy in truth.values()))
        whole = hypervolume(truth.values(), reference)
        of_proxy = hypervolume([truth[design] for design in pareto(designs) if design in truth], reference)
        run = self.fleetfit("transfer", "run", self.table("nasbench201"), "--space", "nasbench201", "--proxy", PROXY, "--target", target,
                            "--accuracy", f"table:{self.args.accuracy}#{ACCURACY}", "--samples", samples + VALIDATION, "--max-samples", samples + VALIDATION,
                            "--validation", VALIDATION, ok=(0, 1))
        ours = hypervolume([(point["latency_ms"], point["accuracy"]) for point in run["pareto"]], reference)
        return of_proxy / whole, ours / whole, run["measurements"]

    def points(self, device):
        with open(self.table("nasbench201"), newline="") as latency, open(self.args.accuracy, newline="") as accuracy:
            ms = {row["ops"]: float(row[device]) for row in csv.DictReader(latency) if row[device]}
            return {row["ops"]: (ms[row["ops"]], float(row[ACCURACY])) for row in csv.DictReader(accuracy) if row["ops"] in ms}

    def every_proxy(self, name, space, samples):
        devices = self.devices(name, space)
        print(f"\n{space}, {samples} + {VALIDATION} samples: mean over the other devices as proxy\n")
        print("| target | before | after | worst proxy | its own column, all designs |\n|---|---|---|---|---|")
        everything = []
        for target in devices:
            rows = [self.adapt(name, space, proxy, target, samples) for proxy in devices if proxy != target]
            after = [row["srcc_after"] for row in rows]
            everything += after
            itself = self.adapt(name, space, target, devices[0] if target != devices[0] else devices[1], samples)["proxy_fit_srcc"]
            print(f"| `{target}` | {statistics.mean(row['srcc_before'] for row in rows):.3f} | {statistics.mean(after):.3f} | {min(after):.3f} | {itself:.3f} |",
                  flush=True)
        print(f"| mean of {len(everything)} pairs | | {statistics.mean(everything):.3f} | {min(everything):.3f} | |")


def pareto(points):
    """Designs of which none is both faster and better."""
    best, kept = -1.0, []
    for design in sorted(points, key=lambda d: (points[d][0], -points[d][1])):
        if points[design][1] > best:
            best = points[design][1]
            kept.append(design)
    return kept


def hypervolume(points, reference):
    """The area between the points and the slowest, worst design."""
    area, best = 0.0, reference[1]
    for latency, accuracy in sorted(points, key=lambda p: (p[0], -p[1])):
        if accuracy > best:
            area += (reference[0] - latency) * (accuracy - best)
            best = accuracy
    return area


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("latency")
    parser.add_argument("accuracy")
    parser.add_argument("--trials", type=int, default=20)
    study = Study(parser.parse_args())
    study.nasbench()
    study.every_proxy("fbnet", "fbnet", FBNET_SAMPLES)
    study.every_proxy("ofa", "ofa-mbv3", FBNET_SAMPLES)


main()
