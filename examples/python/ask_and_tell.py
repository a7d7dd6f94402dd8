"""Tuning something of your own: ask for parameters, tell what they reach."""
import pathlib

import fleetfit

pathlib.Path("branin.yaml").write_text("""\
name: branin
parameters: {training: {x: {range: [-5, 10]}, y: {range: [0, 15]}}}
objective: {minimize: value}
budget: {kind: epochs, max_epochs: 1, max_trials: 40}
algorithm: {model: tpe}
""", encoding="utf-8")

place = fleetfit.Workplace("memory:")
place.create_study("branin.yaml")
study = place.study("branin")
for trial in study:
    x, y = trial.params["x"], trial.params["y"]
    study.tell(trial, value=(y - 0.129 * x**2 + 1.592 * x - 6) ** 2 + (x - 5) ** 2 / 10)
print(study.best()["params"])
