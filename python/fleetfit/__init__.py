"""fleetfit fits one neural network to a whole fleet of edge devices.

Reports are dictionaries with the keys that the command line prints with --json; designs, features and latencies are NumPy arrays.
What fails raises `fleetfit.Error` or one of its kinds, with the one line that the command line would print. Long calls release the
interpreter's lock, and Ctrl-C stops them.

    import fleetfit
    fleetfit.inspect("model.onnx")["totals"]["flops"]
    place = fleetfit.Workplace()                    # keeps what it measures in fleetfit.db
    place.measure(["model.onnx"], max_time_s=5)[0]["latency_ms"]["median"]
    space = fleetfit.space("nasbench201")
    space.encode(space.sample(100))                 # a matrix of features

docs/python.md has more.
"""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _native
from ._native import (AdaptedProxy, DesignPredictor, FewShotModel, KnownDevices, Space, adapt, adapt_proxy, convert, correlate, few_shot, inspect,
                      kernels, load_adapted, load_design_predictor, predict, read_table, select_proxy, space, spaces,
                      train_design_predictor, write_zoo_network, zoo)
from .errors import Cancelled, DeviceFailed, Error, InputOutput, InvalidInput, NotFound, Unstable, Unsupported

__version__: str = _native.version

PathLike = Union[str, "os.PathLike[str]"]
#: A source's text ('table:F.csv#pixel3', 'predictor:P.json', 'device:local'), or a function of a matrix of designs.
Source = Union[str, Callable[[npt.NDArray[np.uint16]], npt.ArrayLike]]


def find_program() -> str:
    """The program `fleetfit`, in which models are run: $FLEETFIT_PROGRAM, or beside this package, or in PATH."""
    named = os.environ.get("FLEETFIT_PROGRAM")
    if named:
        return named
    package = pathlib.Path(__file__).resolve().parent
    # A build tree has python/fleetfit and bin; an installation lib/python3/dist-packages/fleetfit and bin.
    for top in (package.parents[1], *package.parents[3:4]):
        program = top / "bin" / "fleetfit"
        if program.exists():
            return str(program)
    found = shutil.which("fleetfit")
    if found:
        return found
    raise NotFound("the program fleetfit is neither beside the Python package nor in PATH; FLEETFIT_PROGRAM names it")


@dataclasses.dataclass(frozen=True)
class Trial:
    """What a study asks to evaluate."""

    number: int
    params: dict[str, Any]
    budget: dict[str, Any]  #: epochs and data_fraction, of all levels so far together
    level: int
    resume: bool  #: it has been trained with a smaller budget before


class Study:
    """A tuning study that is driven by asking for trials and telling what they have reached."""

    def __init__(self, dialogue: _native.StudyDialogue):
        self._dialogue = dialogue
        self._done = False

    @property
    def name(self) -> str:
        return self._dialogue.name

    @property
    def done(self) -> bool:
        """Whether there is nothing more to come, as far as the last `ask` could tell."""
        return self._done

    def ask(self, count: int = 1) -> list[Trial]:
        """Up to `count` trials. None, though the study is not done: tell first what others have reached."""
        answer = self._dialogue.ask(count)
        self._done = answer["done"]
        return [Trial(one["trial"], one["params"], one["budget"], one["level"], one["resume"]) for one in answer["trials"]]

    def tell(self, trial: Trial | int, **values: float | str) -> dict[str, Any]:
        """What a trial has reached: accuracy, loss, time_s, energy_j, any number that the objective names, `model` (a file), or
        `failed` with the reason."""
        number = trial.number if isinstance(trial, Trial) else trial
        plain = {name: value if isinstance(value, str) else float(value) for name, value in values.items()}
        try:
            text = json.dumps(plain, allow_nan=False)
        except ValueError:
            raise InvalidInput("values: expected finite numbers") from None
        return self._dialogue.tell(number, text)[0]

    def __iter__(self) -> Iterator[Trial]:
        """Trials one after the other, each to be reported before the next, until the study is done."""
        while trials := self.ask():
            yield from trials

    def best(self) -> dict[str, Any]:
        """The best trial that keeps all limits, and how to deploy it."""
        return self._dialogue.best()

    def show(self) -> dict[str, Any]:
        """All trials with their states."""
        return self._dialogue.show()

    def report(self, output: PathLike) -> dict[str, Any]:
        """Writes the study as one page of HTML."""
        return self._dialogue.report(output)


class Workplace(_native.Workplace):
    """Where results are kept: 'sqlite:FILE' or 'memory:'. One call at a time works with it."""

    def __init__(self, store: str = "sqlite:fleetfit.db", *, program: PathLike | None = None, progress: bool = False):
        super().__init__(store, os.fspath(program) if program else find_program(), progress)

    def run(self, model: PathLike, inputs: Mapping[str, npt.ArrayLike] | None = None, *, device: str = "local", batch: int = 1,
            dimensions: Mapping[str, int] | None = None, seed: int = 1) -> dict[str, npt.NDArray[Any]]:
        """Runs a model once: arrays in, arrays out, by name. Without inputs they are random."""
        with tempfile.TemporaryDirectory(prefix="fleetfit-") as name:
            folder = pathlib.Path(name)
            files = []
            for number, (tensor, array) in enumerate((inputs or {}).items()):
                file = folder / f"input{number}.npy"
                np.save(file, np.ascontiguousarray(array))
                files.append((tensor, file))
            ran = self.run_model(model, folder / "outputs", files, inputs is None, device, batch, dict(dimensions or {}), seed)
            return {one["name"]: np.load(one["file"]) for one in ran["outputs"]}

    def study(self, name: str, *, worker: str = "python", lease_s: float | None = None) -> Study:
        """A study of the store, to ask and tell. A trial that was not reported in `lease_s` is given to another one who asks."""
        return Study(self.open_study(name, worker, lease_s))


def search(space: str, latency: Source, accuracy: Source, *, workplace: Workplace | None = None, **options: Any) -> dict[str, Any]:
    """`Workplace.search` where nothing has to be kept."""
    if workplace is None:
        sources = (latency, accuracy, options.get("energy"), options.get("memory"))
        measures = any(isinstance(source, str) and source.startswith("device:") for source in sources)
        workplace = Workplace("memory:", program=None if measures else "fleetfit")  # else nothing is started
    return workplace.search(space, latency, accuracy, **options)


def medians(records: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.float64]:
    """The median of each record that `measure` or `measure_designs` gave, in ms; NaN where the measurement has failed."""
    return np.array([one["latency_ms"]["median"] if one["latency_ms"] else np.nan for one in records], dtype=float)


__all__ = [
    "AdaptedProxy", "Cancelled", "DesignPredictor", "DeviceFailed", "Error", "FewShotModel", "InputOutput", "InvalidInput", "KnownDevices",
    "NotFound", "Space", "Study", "Trial", "Unstable", "Unsupported", "Workplace", "adapt", "adapt_proxy", "convert", "correlate", "few_shot",
    "find_program", "inspect", "kernels", "load_adapted", "load_design_predictor", "medians", "predict", "read_table", "search",
    "select_proxy", "space", "spaces", "train_design_predictor", "write_zoo_network", "zoo",
]
