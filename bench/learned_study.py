#!/usr/bin/env python3
"""Learning to optimize on NAS-Bench-201's 27 devices: devices and whole families of them are left out, learned from the others, and answered for.

    learned_study.py FLEETFIT FOLDER [--splits families,groups] [--method supervised,unsupervised] [--only N] [--bulk 1000000] [--keep DIR] [--compute cuda]

FOLDER holds latency/ and accuracy/ of the public data. Features are the ten reference latencies of HELP. Prints the tables of docs/benchmarks.md. One training and its
comparisons take about a minute on two cores; --keep DIR keeps each split's result, so that the study can be done in pieces (--only N does one split).
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

FAMILIES = {
    "1080ti": ["1080ti_1", "1080ti_32", "1080ti_256"],
    "2080ti": ["2080ti_1", "2080ti_32", "2080ti_256"],
    "titan rtx": ["titan_rtx_1", "titan_rtx_32", "titan_rtx_256"],
    "titanx": ["titanx_1", "titanx_32", "titanx_256", "titanxp_1", "titanxp_32", "titanxp_256"],
    "server CPUs": ["gold_6226", "gold_6240", "silver_4114", "silver_4210r"],
    "phones": ["essential_ph_1", "pixel2", "samsung_a50", "samsung_s7"],
    "dead paths removed": ["pixel3", "raspi4"],
    "accelerators": ["eyeriss", "fpga"],
}
# Devices of different families, so that each has relatives among those that are left.
GROUPS = [
    ["1080ti_1", "titanx_256", "gold_6226", "pixel2"], ["1080ti_256", "titan_rtx_1", "silver_4114", "samsung_a50"],
    ["1080ti_32", "2080ti_1", "raspi4", "gold_6240"], ["2080ti_256", "titanxp_1", "essential_ph_1", "fpga"],
    ["2080ti_32", "titanx_1", "pixel3", "titan_rtx_256"], ["titan_rtx_32", "titanxp_256", "eyeriss", "samsung_s7"],
    ["titanx_32", "titanxp_32", "silver_4210r"],
]


def write_features(folder, path):
    with open(folder / "latency/nasbench201.csv") as file:
        rows = list(csv.DictReader(file))
    references = [rows[i] for i in json.loads((folder / "latency/help_reference_arch_indices.json").read_text())["nasbench201"]]
    devices = [name for name in rows[0] if name not in ("arch_index", "ops")]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["device", *(f"ref:nasbench201@1:{row['ops']}" for row in references)])
        writer.writerows([device, *(row[device] for row in references)] for device in devices)


def run(*command):
    return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True).stdout)


def learn(options, verb, features, *more):
    data = ["--space", "nasbench201", "--table", options.folder / "latency/nasbench201.csv", "--device-features", features,
            "--accuracy", f"table:{options.folder}/accuracy/nasbench201.csv#c10_test_200ep"]
    return run(options.fleetfit, "--store", "memory:", "--json", "--threads", options.threads, "learn", verb, *data, *more)


def quantile(values, share):
    values = sorted(values)
    place = share * (len(values) - 1)
    low = int(place)
    return values[low] + (place - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def print_ways(results):
    for budgets in ("range", "quantiles"):
        print(f"Budgets over the {budgets} of the latencies:\n")
        print("| way | cases | median loss | 90th percentile | mean | in budget | one answer |\n|---|---|---|---|---|---|---|")
        for way in dict.fromkeys(way["way"] for way in results[0]["ways"]):
            cases = [case for result in results for case in result["outcomes"] if (case["way"], case["budgets"]) == (way, budgets)]
            losses = [case["best_accuracy"] - case["accuracy"] for case in cases]
            kept = statistics.mean(case["latency_ms"] <= case["budget_ms"] for case in cases)
            us = statistics.mean(one["answer_us"] for result in results for one in result["ways"] if one["way"] == way)
            print(f"| {way} | {len(cases)} | {statistics.median(losses):.2f} | {quantile(losses, .9):.2f} | {statistics.mean(losses):.2f} | "
                  f"{100 * kept:.1f} % | {us:.0f} us |")
        print()


def print_devices(names, results):
    print("| left out | device | rank correlation | few-shot, own choice | few-shot, same ten | error | median loss | largest loss | in budget |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for name, result in zip(names, results):
        for device in result["devices"]:
            cases = [o for o in result["outcomes"] if o["way"] == "learned" and o["device"] == device["device"]]
            losses = [case["best_accuracy"] - case["accuracy"] for case in cases]
            kept = statistics.mean(case["latency_ms"] <= case["budget_ms"] for case in cases)
            same = device["few_shot_same_srcc"]
            rows.append((device["srcc"], device["few_shot_srcc"], same if same is not None else float("nan")))
            print(f"| {name} | `{device['device']}` | {rows[-1][0]:.3f} | {rows[-1][1]:.3f} | {rows[-1][2]:.3f} | {device['mape']:.1f} % | "
                  f"{statistics.median(losses):.2f} | {max(losses):.2f} | {100 * kept:.0f} % |")
    print("| mean | | " + " | ".join(f"{statistics.mean(column):.3f}" for column in zip(*rows)) + " | | | | |\n", flush=True)


def study(options, features, kind, method):
    splits = list(FAMILIES.items()) if kind == "families" else [(f"group {i + 1}", group) for i, group in enumerate(GROUPS)]
    results = []
    for number, (name, devices) in enumerate(splits):
        if options.only is not None and number != options.only:
            continue
        kept = options.keep / f"{kind}-{method}-{number}.json" if options.keep else None
        if kept and kept.exists():
            results.append(json.loads(kept.read_text()))
            continue
        results.append(learn(options, "eval", features, "--method", method, "--compute", options.compute, "--leave-out", ",".join(devices)))
        if kept:
            kept.write_text(json.dumps(results[-1]))
    if options.only is not None:
        return
    print(f"**{kind}, {method}** ({statistics.mean(result['training_s'] for result in results):.0f} s of training for each split)\n")
    print_ways(results)
    print_devices([name for name, _ in splits], results)


def bulk(options, features, folder):
    model = folder / "model.json"
    trained = learn(options, "train", features, "-o", model)
    result = run(options.fleetfit, "--json", "learn", "bulk", model, "--device-features", features, "--devices", options.bulk)
    print(f"trained on {len(trained['devices'])} devices in {trained['elapsed_s']:.0f} s; {result['devices']} devices answered in {result['elapsed_s']:.1f} s, "
          f"{result['answer_us']:.0f} us each on one thread, {result['peak_memory_bytes'] / 1e6:.0f} MB, {result['designs']} different designs, "
          f"{100 * result['within'] / result['devices']:.1f} % within their budget, {100 * result['unsure'] / result['devices']:.1f} % in doubt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fleetfit")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--splits", default="families,groups")
    parser.add_argument("--method", default="supervised")
    parser.add_argument("--only", type=int)
    parser.add_argument("--bulk", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--compute", default="cpu", choices=("cpu", "cuda"), help="what trains")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        features = folder / "features.csv"
        write_features(options.folder, features)
        for kind in filter(None, options.splits.split(",")):
            for method in options.method.split(","):
                study(options, features, kind, method)
        if options.bulk:
            bulk(options, features, folder)


if __name__ == "__main__":
    main()
