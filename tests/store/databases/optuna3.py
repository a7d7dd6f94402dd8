#!/usr/bin/env python3
"""Makes optuna3.sql, a file of Optuna 3 for tests: optuna3.py > optuna3.sql

Two studies: `mixed` has all kinds of parameters, one of which depends on another, and trials in all states;
`pareto` has two objectives. Times are replaced, so that the numbers can be checked.
"""
import math
import os
import sqlite3
import sys
import tempfile

sys.path.append('/usr/lib/python3/dist-packages')
import optuna  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


def objective(trial):
    trial.suggest_float('learning_rate', 1e-5, 1e-1, log=True)
    trial.suggest_int('layers', 1, 8)
    optimizer = trial.suggest_categorical('optimizer', ['adam', 'sgd', None, 3, True])
    trial.suggest_float('dropout', 0, 0.5, step=0.1)
    trial.suggest_int('width', 16, 256, log=True)
    trial.suggest_int('batch', 8, 64, step=8)
    if optimizer == 'sgd':
        trial.suggest_float('momentum', 0.5, 0.99)
    for epoch in range(2 if trial.number == 3 else 3):
        trial.report(0.25 * epoch, epoch)
    if trial.number == 3:
        raise optuna.TrialPruned()
    if trial.number == 4:
        raise ValueError()
    return math.inf if trial.number == 5 else 0.5 + trial.number / 16


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'optuna.db')
        url = 'sqlite:///' + path
        mixed = optuna.create_study(storage=url, study_name='mixed', direction='maximize',
                                    sampler=optuna.samplers.RandomSampler(seed=4))
        mixed.optimize(objective, n_trials=8, catch=(ValueError,))
        mixed.ask()  # running
        mixed.enqueue_trial({'layers': 3})  # waiting
        pareto = optuna.create_study(storage=url, study_name='pareto',
                                     directions=['maximize', 'minimize'],
                                     sampler=optuna.samplers.RandomSampler(seed=4))
        pareto.optimize(lambda trial: (trial.suggest_float('x', 0, 1), 2.5), n_trials=2)
        with sqlite3.connect(path) as database:
            database.execute("UPDATE trials SET datetime_start = '2025-10-09 08:53:20.000000', "
                             "datetime_complete = CASE WHEN datetime_complete IS NULL THEN NULL "
                             "ELSE '2025-10-09 08:53:' || (20 + number) || '.500000' END")
            database.commit()
            print(f'-- Made by optuna3.py with Optuna {optuna.__version__}.')
            for line in database.iterdump():
                print(line)


if __name__ == '__main__':
    main()
