#!/usr/bin/python3
"""Our boosted trees beside scikit-learn's GradientBoostingRegressor: the same rows, features and splits.

usage: boosting_side_by_side.py PREDICT_BENCH TABLE.csv [--splits N]

TABLE is one data set whose columns are features, but the last, `ms`; or the convolutions of DeepBench, of which each device and precision is a
data set. Both tune stages (1 to 200) and the least number of samples by
5-fold cross-validation. scikit-learn minimizes the squared percentage error or that of the logarithm, ours the latter, alone or as the correction
of a linear model (which is what predictors use).
Prints the mean absolute percentage error on a fifth of the rows that neither saw.
"""
import argparse
import collections
import csv
import math
import pathlib
import random
import statistics
import subprocess
import tempfile

import numpy
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import KFold


def read_sets(path, least):
    """Data set -> rows of features with the time in ms at the end."""
    with open(path, newline="", encoding="utf-8") as file:
        table = list(csv.reader(file))
    if table[0][-1] == "ms":
        return {(pathlib.Path(path).stem,): [[float(cell) for cell in row] for row in table[1:]]}
    sets = collections.defaultdict(list)
    names = ("in_w", "in_h", "in_c", "batch", "out_c", "k_w", "k_h", "pad_w", "pad_h", "stride_w", "stride_h")
    for cells in table[1:]:
        row = dict(zip(table[0], cells))
        if not row["fwd_ms"] or float(row["fwd_ms"]) <= 0:
            continue
        w, h, c, n, k, kw, kh, pw, ph, sw, sh = (float(row[name]) for name in names)
        ow, oh = (w + 2 * pw - kw) // sw + 1, (h + 2 * ph - kh) // sh + 1
        flops = 2 * n * k * ow * oh * c * kw * kh
        sizes = (n * c * w * h, n * k * ow * oh, k * c * kw * kh)
        sets[row["device"], row["suite"], row["precision"]].append([w, h, c, n, k, kw, kh, sw, sh, ow, oh, flops, *sizes, float(row["fwd_ms"])])
    return {name: rows for name, rows in sets.items() if len(rows) >= least}


def mape(predicted, measured):
    return 100 * float(numpy.mean(numpy.abs(predicted / measured - 1)))


def sklearn_error(train, test, logarithm):
    x, y = train[:, :-1], train[:, -1]

    def fit(rows, least, stages):
        model = GradientBoostingRegressor(n_estimators=stages, min_samples_split=least, random_state=1)
        target = numpy.log(y[rows]) if logarithm else y[rows]
        return model.fit(x[rows], target, sample_weight=None if logarithm else 1 / y[rows] ** 2)

    back = numpy.exp if logarithm else (lambda v: v)
    best = (math.inf, 0, 0)
    for least in range(2, 8):
        errors = numpy.zeros(200)
        for seen, held_out in KFold(5, shuffle=True, random_state=1).split(x):
            for stage, predicted in enumerate(fit(seen, least, 200).staged_predict(x[held_out])):
                errors[stage] += mape(back(predicted), y[held_out]) / 5
        best = min(best, (errors.min(), least, int(errors.argmin()) + 1))
    model = fit(numpy.arange(len(y)), best[1], best[2])
    return mape(back(model.predict(test[:, :-1])), test[:, -1])


def our_errors(program, train, test):
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, rows in (("train", train), ("test", test)):
            files.append(pathlib.Path(folder) / f"{name}.csv")
            header = ",".join([f"f{i}" for i in range(rows.shape[1] - 1)] + ["ms"])
            numpy.savetxt(files[-1], rows, delimiter=",", header=header, comments="", fmt="%.17g")
        out = subprocess.run([program, "--fit", *files], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in out.splitlines()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("table")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--least", type=int, default=90, help="rows that a data set needs")
    arguments = parser.parse_args()
    columns = ("sklearn, percentage", "sklearn, logarithm", "logarithm", "correction")
    print(f"{'data set':<50} {'rows':>5}", *(f"{c:>20}" for c in columns))
    every = collections.defaultdict(list)
    for name, rows in sorted(read_sets(arguments.table, arguments.least).items()):
        sums = collections.defaultdict(list)
        for split in range(arguments.splits):
            rows = sorted(rows)
            random.Random(split).shuffle(rows)
            data = numpy.array(rows)
            test, train = data[: len(rows) // 5], data[len(rows) // 5 :]
            for logarithm, column in ((False, columns[0]), (True, columns[1])):
                sums[column].append(sklearn_error(train, test, logarithm))
            for column, error in our_errors(arguments.program, train, test).items():
                sums[column].append(error)
        for column in columns:
            every[column] += sums[column]
        print(f"{' '.join(name)[:50]:<50} {len(rows):>5}", *(f"{statistics.mean(sums[c]):>18.2f} %" for c in columns), flush=True)
    print(f"{'mean':<56}", *(f"{statistics.mean(every[c]):>18.2f} %" for c in columns))


main()
