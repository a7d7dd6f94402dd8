#!/usr/bin/env python3
"""Trials per second of a store with eight writers, on PostgreSQL that waits for its disk, with pgbench in the same run.

    tools/with-postgres --durable bench/store_writers.py build/release/bin/store_writers_bench [SECONDS]
"""
import os
import pathlib
import re
import subprocess
import sys

WRITERS = 8


def pgbench(url, seconds, *flags):
    program = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pgbench"))[-1]
    output = subprocess.run([program, "-n", "-c", str(WRITERS), "-j", "2", "-T", str(seconds), *flags, url], check=True,
                            capture_output=True, text=True).stdout
    return float(re.search(r"tps = ([0-9.]+)", output).group(1))


def print_sizes(url):
    """Bytes on the disk, with indexes, for each trial and each measurement."""
    def number(sql):
        return float(subprocess.run(["psql", url, "-X", "-A", "-t", "-c", sql], check=True, capture_output=True, text=True).stdout)

    def size(*tables):
        return sum(number(f"SELECT pg_total_relation_size('fleetfit.{table}')") for table in tables)

    subprocess.run(["psql", url, "-X", "-q", "-c", "VACUUM FULL fleetfit.trials, fleetfit.levels, fleetfit.measurements, fleetfit.operators"], check=True)
    print(f"{'a trial with one level, with indexes':<60} {size('trials', 'levels') / number('SELECT count(*) FROM fleetfit.levels'):>8.0f} bytes")
    print(f"{'a measurement with 60 operators, with indexes':<60} "
          f"{size('measurements', 'operators') / number('SELECT count(*) FROM fleetfit.measurements'):>8.0f} bytes")


def main():
    url = os.environ["FLEETFIT_TEST_POSTGRES"]
    seconds = sys.argv[2] if len(sys.argv) > 2 else "5"
    program = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pgbench"))[-1]
    subprocess.run([program, "-i", "-q", "-s", "10", url], check=True, capture_output=True)
    for name, flags in (("TPC-B-like (7 statements)", ()), ("simple update (5 statements)", ("-N",))):
        print(f"{'pgbench, ' + str(WRITERS) + ' clients, ' + name:<60} {pgbench(url, seconds, *flags):>8.0f} transactions/s", flush=True)
    subprocess.run([sys.argv[1], url, str(WRITERS), seconds], check=True)
    print_sizes(url)


if __name__ == "__main__":
    main()
