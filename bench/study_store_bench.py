#!/usr/bin/env python3
"""The store with a study's trials, and Optuna's RDB storage on SQLite beside it, on the same disk.

    bench/study_store_bench.py build/release/bin/study_store_bench [TRIALS]

Both keep five parameters, four values on the way and one result of each trial. Optuna's storage is
called as its study does (without a sampler's time); it is asked for far fewer trials, as it would
take hours for a million.
"""
import os
import subprocess
import sys
import tempfile
import time

sys.path.append('/usr/lib/python3/dist-packages')
import optuna  # noqa: E402
from optuna.distributions import FloatDistribution  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

PARAMETERS = {name: FloatDistribution(0, 1) for name in 'abcde'}


def singles(study, count):
    """Trials per second: new, five parameters, four values on the way, result."""
    start = time.perf_counter()
    for i in range(count):
        trial = study.ask(PARAMETERS)
        for step in range(4):
            trial.report(0.5, step)
        study.tell(trial, i / count)
    return count / (time.perf_counter() - start)


def batches(study, count):
    """Trials per second of finished trials that are brought in together."""
    values = {name: 0.5 for name in PARAMETERS}
    trials = [create_trial(state=TrialState.COMPLETE, params=values, distributions=PARAMETERS,
                           value=i / count, intermediate_values={0: .1, 1: .2, 2: .3, 3: .4})
              for i in range(count)]
    start = time.perf_counter()
    study.add_trials(trials)
    return count / (time.perf_counter() - start)


def run_optuna():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        url = 'sqlite:///' + os.path.join(folder, 'optuna.db')
        study = optuna.create_study(storage=url, study_name='bench',
                                    sampler=optuna.samplers.RandomSampler(seed=1))
        print(f'{"Optuna " + optuna.__version__ + ", one by one":<44} '
              f'{singles(study, 100):>10.1f} trials/s', flush=True)
        print(f'{"Optuna, add_trials of 1000":<44} {batches(study, 1000):>10.1f} trials/s',
              flush=True)
        print(f'{"Optuna, one by one, 1100 trials stored":<44} '
              f'{singles(study, 100):>10.1f} trials/s', flush=True)
        start = time.perf_counter()
        best = optuna.load_study(storage=url, study_name='bench').best_trial
        assert best is not None
        print(f'{"Optuna, best of 1200 trials":<44} '
              f'{1000 * (time.perf_counter() - start):>10.2f} ms', flush=True)


if __name__ == '__main__':
    subprocess.run(sys.argv[1:], check=True)
    run_optuna()
