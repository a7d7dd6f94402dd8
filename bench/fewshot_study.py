#!/usr/bin/env python3
"""Few-shot transfer on other people's measurements: HELP's splits, and each device of a table left out in turn.

    fewshot_study.py FLEETFIT FOLDER [--trials 20] [--samples 10,20,50] [--spaces nasbench201,fbnet,ofa-mbv3] [--splits help,left-out]

FOLDER holds nasbench201.csv, fbnet.csv and ofa.csv of HELP. Prints tables of docs/fewshot.md. A device that is left out has no help of its own kind at other batch sizes.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess

FILES = {"nasbench201": "nasbench201.csv", "fbnet": "fbnet.csv", "ofa-mbv3": "ofa.csv"}
KEYS = {"arch_index", "sample_index", "ops", "ks", "e", "d", "r"}
# Training and test devices of HELP's tables 2, 3 and 5, as far as the folder has them.
HELP = {
    "nasbench201": ("1080ti_1,1080ti_32,1080ti_256,silver_4114,silver_4210r,samsung_a50,pixel3,essential_ph_1,samsung_s7",
                    "titan_rtx_256,gold_6226,fpga,pixel2,raspi4,eyeriss"),
    "fbnet": ("1080ti_32,silver_4114,samsung_a50", "fpga"),
    "ofa-mbv3": ("2080ti_1,2080ti_64,titan_xp_1,titan_xp_64,v100_64", "titan_rtx_1,titan_rtx_32"),
}


def family(device):
    name, _, batch = device.rpartition("_")
    return name if batch in ("1", "32", "64", "256") else device


def devices_of(table):
    with open(table) as file:
        return [name for name in next(csv.reader(file)) if name not in KEYS]


def fewshot(options, space, references, target, samples):
    command = [options.fleetfit, "transfer", "fewshot", options.folder / FILES[space], "--space", space, "--references", ",".join(references),
               "--target", target, "--samples", samples, "--trials", options.trials, "--json"]
    return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True).stdout)


def study(options, space, targets, references_of):
    """Prints a row for each target, and the means."""
    print(f"| target | {' | '.join(f'{n} samples' for n in options.samples)} | worst trial with {options.samples[0]} | in 90 % intervals | ceiling told | error |")
    print("|---|" + "---|" * (len(options.samples) + 4))
    rows = []
    for target in targets:
        results = [fewshot(options, space, references_of(target), target, n) for n in options.samples]
        row = [result["srcc"] for result in results]
        row += [min(trial["srcc"] for trial in results[0]["trials"]), results[0]["coverage90"], results[-1]["ceiling"]]
        print(f"| `{target}` | {' | '.join(f'{value:.3f}' for value in row)} | {results[0]['mape']:.1f} % |", flush=True)
        rows.append(row)
    print(f"| mean | {' | '.join(f'{statistics.mean(column):.3f}' for column in zip(*rows))} | |\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fleetfit")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--samples", type=lambda text: [int(n) for n in text.split(",")], default=[10, 20, 50])
    parser.add_argument("--spaces", type=lambda text: text.split(","), default=list(FILES))
    parser.add_argument("--splits", type=lambda text: text.split(","), default=["help", "left-out"])
    options = parser.parse_args()
    for space in options.spaces if "help" in options.splits else ():
        references, targets = (names.split(",") for names in HELP[space])
        print(f"{space}, HELP's split\n")
        study(options, space, targets, lambda target: references)
    for space in options.spaces if "left-out" in options.splits else ():
        devices = devices_of(options.folder / FILES[space])
        print(f"{space}, each device left out\n")
        study(options, space, devices, lambda target: [device for device in devices if family(device) != family(target)])


main()
