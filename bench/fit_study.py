#!/usr/bin/env python3
"""How good `fleetfit fit` is on a table of real devices, each of them in turn the unknown one.

    python3 bench/fit_study.py build/release/bin/fleetfit ../shared/data

Every device has budgets at 30, 50 and 70 % of the range of its latencies. A budget is kept if the design that `fit` gives takes, by the
device's column, no more; the loss is the accuracy that the best of all designs within the budget has more. Designs whose input does not
reach the output are no part of the range. `fit` sees ten cells of the device's column to learn and at most four to confirm; all other
columns are known to it (--without-siblings: but for other batch sizes of the same GPU).
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

SHARES = (0.3, 0.5, 0.7)
BATCHES = ("1", "32", "256")


def kind_of(device):
    """1080ti_32 is a 1080ti; essential_ph_1 is a phone of that name."""
    name, _, batch = device.rpartition("_")
    return name if batch in BATCHES and device != "essential_ph_1" else device


def read_table(path, columns=None):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    names = columns or [name for name in rows[0] if name not in ("ops", "arch_index")]
    return {name: {row["ops"]: float(row[name]) for row in rows} for name in names}


def connects(ops):
    """Edges (0>1)(0>2)(1>2)(0>3)(1>3)(2>3); 0 is none."""
    edge = [digit != "0" for digit in ops]
    reached = [True, edge[0], False, False]
    reached[2] = edge[1] or (reached[1] and edge[2])
    return edge[3] or (reached[1] and edge[4]) or (reached[2] and edge[5])


def fleet_of(devices, budgets, args, share):
    lines = ["name: study", "space: nasbench201", f"accuracy: table:{args.accuracy}#{args.column}", f"latency: {args.latency}",
             f"measurements: {args.measurements}", f"confirmations: {args.confirmations}", "devices:"]
    for device in devices:
        lines.append(f"  - name: {device}")
        lines.append(f"    budget: {{latency: {budgets[device, share]!r} ms}}")
        if args.without_siblings:
            others = [other for other in devices if kind_of(other) != kind_of(device)]
            lines.append(f"    references: [{', '.join(others)}]")
    return "\n".join(lines) + "\n"


def fit(args, text, seed, folder):
    file = folder / "fleet.yaml"
    file.write_text(text)
    command = [args.fleetfit, "fit", file, "-o", folder / "out", "--json", "--quiet", "--store", "memory:", "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fleetfit")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--measurements", type=int, default=10)
    parser.add_argument("--confirmations", type=int, default=4)
    parser.add_argument("--column", default="c10_test_200ep")
    parser.add_argument("--without-siblings", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail if fewer than 99 % are kept or the mean loss is 0.15 or more")
    args = parser.parse_args()
    args.latency = (args.data / "latency/nasbench201.csv").resolve()
    args.accuracy = (args.data / "accuracy/nasbench201.csv").resolve()
    if not args.latency.exists():
        print(f"skipped: {args.latency} is not here")
        sys.exit(77)
    latency = read_table(args.latency)
    accuracy = read_table(args.accuracy, [args.column])[args.column]
    connected = [ops for ops in accuracy if connects(ops)]
    budgets, optimum = {}, {}
    for device, column in latency.items():
        low, high = min(column[ops] for ops in connected), max(column[ops] for ops in connected)
        for share in SHARES:
            budgets[device, share] = low + share * (high - low)
            optimum[device, share] = max(accuracy[ops] for ops in accuracy if column[ops] <= budgets[device, share])
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            for share in SHARES:
                report = fit(args, fleet_of(list(latency), budgets, args, share), seed, pathlib.Path(folder))
                for one in report["devices"]:
                    name, best = one["device"], one["best"]
                    kept = best is not None and latency[name][best["design"]] <= budgets[name, share]
                    assert one["measurements"] <= args.measurements + args.confirmations, one
                    cases.append({"device": name, "share": share, "kept": kept, "measurements": one["measurements"],
                                  "loss": optimum[name, share] - accuracy[best["design"]] if kept else None})
    summarize(cases, args)


def summarize(cases, args):
    def line(name, some):
        kept = [case for case in some if case["kept"]]
        losses = sorted(case["loss"] for case in kept)
        mean = sum(losses) / len(losses)
        count = sum(case["measurements"] for case in some) / len(some)
        print(f"{name:16} {len(some):5} {100 * len(kept) / len(some):8.2f} {mean:8.3f} {losses[-1]:8.3f} {count:8.2f}")
        return len(kept) / len(some), mean

    print(f"{'':16} {'cases':>5} {'kept, %':>8} {'loss':>8} {'worst':>8} {'measured':>8}")
    for device in dict.fromkeys(case["device"] for case in cases):
        line(device, [case for case in cases if case["device"] == device])
    for share in SHARES:
        line(f"budget {100 * share:.0f} %", [case for case in cases if case["share"] == share])
    kept, loss = line("all", cases)
    if args.check and (kept < 0.99 or loss >= 0.15):
        sys.exit("fewer than 99 % are kept, or the mean loss is 0.15 points or more")


if __name__ == "__main__":
    main()
