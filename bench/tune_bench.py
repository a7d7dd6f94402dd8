#!/usr/bin/env python3
"""fleetfit's samplers beside Optuna's, on the same functions with the same number of evaluations.

    python3 bench/tune_bench.py build/release/bin/tune_bench            everything, as Markdown
    … --keep runs.json --seconds 150      what Optuna did is kept in a file; stops early, to be called again
    … --set other                         functions beside those of the benchmark
    … --check                             only: do both languages compute the same values?
    … --overhead                          time for a suggestion after 10, 1,000, … observations

Optuna runs as its users run it: TPESampler with its defaults, and with multivariate=True; where trials have two
fidelities, under HyperbandPruner. Tables come from $FLEETFIT_SHARED_DATA, else ../shared/data.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import time
import warnings

sys.path.append("/usr/lib/python3/dist-packages")
import optuna  # noqa: E402

import tune_functions  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SAMPLERS = {"optuna": {}, "optuna multivariate": {"multivariate": True}}


def is_active(parameter, chosen):
    when = parameter.get("when")
    return when is None or chosen.get(when[0]) in when[1]


def suggest(trial, parameters):
    """A point by position: choices by their index, NaN for what is not active."""
    chosen = {}
    point = []
    for parameter in parameters:
        name = parameter["name"]
        if not is_active(parameter, chosen):
            point.append(math.nan)
            continue
        if "values" in parameter:
            chosen[name] = trial.suggest_categorical(name, parameter["values"])
            point.append(parameter["values"].index(chosen[name]))
        elif parameter.get("integer"):
            point.append(trial.suggest_int(name, parameter["low"], parameter["high"], log=parameter.get("log", False)))
        else:
            point.append(trial.suggest_float(name, parameter["low"], parameter["high"], log=parameter.get("log", False)))
    return point


def new_study(options, seed, pruner=None):
    return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, **options), pruner=pruner)


def run_optuna(entry, options, seed, tables):
    """The regret after all evaluations."""
    if "levels" in entry:
        return run_hyperband(entry, options, seed, tables)
    function = tune_functions.function(entry["name"], tables)
    study = new_study(options, seed)
    study.optimize(lambda trial: function(suggest(trial, entry["parameters"])), n_trials=entry["evaluations"])
    return study.best_value - tune_functions.optimum(entry, tables)


def run_hyperband(entry, options, seed, tables):
    low, high = entry["levels"]
    function = tune_functions.function(entry["name"], tables)
    study = new_study(options, seed, optuna.pruners.HyperbandPruner(min_resource=low, max_resource=high))
    spent = 0
    best = math.inf

    def objective(trial):
        nonlocal spent, best
        point = suggest(trial, entry["parameters"])
        trial.report(tables.low_fidelity[tables.key(point)], low)
        if trial.should_prune():
            spent += low
            raise optuna.TrialPruned()
        spent += high
        best = min(best, function(point))
        if spent >= entry["evaluations"] * high:
            study.stop()
        return function(point)

    study.optimize(objective, n_trials=entry["evaluations"] * high // low)
    return best - tune_functions.optimum(entry, tables)


def run_all_optuna(entries, arguments, tables):
    """{sampler: {function: [regret for each seed]}}, or None when the time is over."""
    kept = json.loads(arguments.keep.read_text()) if arguments.keep and arguments.keep.exists() else {}
    end = time.monotonic() + arguments.seconds
    for sampler, options in SAMPLERS.items():
        for entry in entries:
            done = kept.setdefault(sampler, {}).setdefault(entry["name"], [])
            while len(done) < arguments.seeds:
                if time.monotonic() > end:
                    return None
                done.append(run_optuna(entry, options, len(done), tables))
                if arguments.keep:
                    arguments.keep.write_text(json.dumps(kept))
    return kept


def program(arguments, *words, **options):
    command = [str(arguments.program), "--functions", str(HERE / "tune_functions.json"), *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout)


def random_point(parameters, draw):
    chosen = {}
    point = []
    for parameter in parameters:
        if not is_active(parameter, chosen):
            point.append(None)
        elif "values" in parameter:
            point.append(draw.randrange(len(parameter["values"])))
            chosen[parameter["name"]] = parameter["values"][point[-1]]
        elif parameter.get("integer"):
            point.append(draw.randint(parameter["low"], parameter["high"]))
        else:
            point.append(draw.uniform(parameter["low"], parameter["high"]))
    return point


def check(entries, arguments, tables):
    """Fails unless both languages give the same values at random points."""
    draw = random.Random(1)
    asked = {entry["name"]: [random_point(entry["parameters"], draw) for _ in range(200)] for entry in entries}
    answers = program(arguments, "--evaluate", input=json.dumps(asked))
    for name, points in asked.items():
        function = tune_functions.function(name, tables)
        for point, answer in zip(points, answers[name]):
            expected = function(point)
            if abs(expected - answer) > 1e-9 * max(1, abs(expected)):
                sys.exit(f"tune_bench: {name} is {answer} in C++ and {expected} in Python at {point}")


def verdict(ours, peer):
    if ours < peer * (1 - 1e-9) - 1e-12:
        return "better"
    return "equal" if ours <= peer * (1 + 1e-9) + 1e-12 else "worse"


def print_regrets(entries, optuna_regrets, arguments):
    ours = program(arguments, "--seeds", str(arguments.seeds), "--set", arguments.set)
    print(f"Median regret over {arguments.seeds} seeds (quartiles).\n")
    print("| function | evaluations | random | fleetfit | Optuna | Optuna, multivariate | beside Optuna |")
    print("|---|---|---|---|---|---|---|")
    counts = {"better": 0, "equal": 0, "worse": 0}
    for entry in entries:
        name = entry["name"]
        mine, peer = (statistics.median(regrets[name]) for regrets in (ours["fleetfit"], optuna_regrets["optuna"]))
        counts[verdict(mine, peer)] += 1
        cells = [ours["random"], ours["fleetfit"], optuna_regrets["optuna"], optuna_regrets["optuna multivariate"]]
        texts = []
        for regrets in cells:
            low, middle, high = statistics.quantiles(regrets[name], n=4, method="inclusive")
            texts.append(f"{middle:.3g} ({low:.2g} to {high:.2g})")
        print(f"| {name} | {entry['evaluations']} | {' | '.join(texts)} | {verdict(mine, peer)} |")
    print(f"\nBeside Optuna's default: better {counts['better']}, equal {counts['equal']}, worse {counts['worse']}.")


def optuna_suggestion_s(observations, entry):
    """Seconds for a suggestion after so many observations in memory, the fastest of some."""
    study = new_study({}, 1)
    draw = random.Random(1)
    distributions = {p["name"]: optuna.distributions.FloatDistribution(p["low"], p["high"]) for p in entry["parameters"]}
    for _ in range(observations):
        point = {name: draw.random() for name in distributions}
        study.add_trial(optuna.trial.create_trial(params=point, distributions=distributions, value=draw.random()))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        suggest(study.ask(), entry["parameters"])
        times.append(time.perf_counter() - start)
    return min(times)


def print_overhead(arguments, limit_s=60):
    entry = next(e for e in arguments.entries if e["name"] == "hartmann6")
    ours = program(arguments, "--overhead")
    print("Time for one suggestion, six parameters.\n")
    print("| observations | tell, fleetfit | suggest, fleetfit | suggest, Optuna | ratio |\n|---|---|---|---|---|")
    spent = 0
    for row in ours:
        peer = None
        if spent * 10 < limit_s:
            start = time.monotonic()
            peer = optuna_suggestion_s(row["observations"], entry)
            spent = time.monotonic() - start
        texts = (f"{peer * 1e3:.1f} ms", f"{peer * 1e6 / row['suggest_us']:.0f}") if peer else ("over a minute to fill", "–")
        print(f"| {row['observations']:,} | {row['tell_us']:.2f} µs | {row['suggest_us']:.0f} µs | {texts[0]} | {texts[1]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--set", default="benchmark", choices=["benchmark", "other"])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--overhead", action="store_true")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    arguments.entries = json.loads((HERE / "tune_functions.json").read_text())
    tables = tune_functions.Tables()
    if arguments.program.name != "none":
        check(arguments.entries, arguments, tables)
    if arguments.check:
        return
    if arguments.overhead:
        print_overhead(arguments)
        return
    entries = [e for e in arguments.entries if e.get("set", "benchmark") == arguments.set]
    regrets = run_all_optuna(entries, arguments, tables)
    if regrets is None:
        sys.exit("tune_bench: the time is over; call again to go on")
    print_regrets(entries, regrets, arguments)
    if arguments.set == "benchmark":
        print()
        print_overhead(arguments)


if __name__ == "__main__":
    main()
