"""The compiled part; fleetfit re-exports it."""
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

version: str

_Path = Union[str, os.PathLike[str]]
#: A matrix of whole numbers with a row for each design, a row alone, or texts.
_Designs = Union[npt.ArrayLike, str, Sequence[str]]
_Source = Union[str, Callable[[npt.NDArray[np.uint16]], npt.ArrayLike]]
_Report = dict[str, Any]
_Numbers = npt.NDArray[np.float64]

class Space:
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def genes(self) -> list[_Report]: ...
    @property
    def encodings(self) -> dict[str, list[str]]: ...
    def sample(self, count: int, seed: int = 1, first: int = 0) -> npt.NDArray[np.uint16]: ...
    def encode(self, designs: _Designs, encoding: str = "one-hot") -> _Numbers: ...
    def format(self, designs: _Designs) -> list[str]: ...
    def parse(self, texts: Sequence[str]) -> npt.NDArray[np.uint16]: ...
    def describe(self, design: str, onnx: _Path | None = None) -> _Report: ...

def spaces() -> list[_Report]: ...
def space(name: str) -> Space: ...
def read_table(
    file: _Path, space: Space, columns: Sequence[str] = [], accuracies: bool = False
) -> tuple[npt.NDArray[np.uint16], list[str], _Numbers]: ...

class FewShotModel:
    def predict(self, designs: _Designs) -> tuple[_Numbers, _Numbers, _Numbers]: ...
    def next(self, candidates: _Designs, count: int = 1) -> npt.NDArray[np.int64]: ...
    @property
    def verdict(self) -> _Report: ...

class KnownDevices:
    def __init__(self, space: Space, designs: _Designs, latency_ms: npt.ArrayLike, names: Sequence[str] = [], seed: int = 1) -> None: ...
    def choose(self, candidates: _Designs, count: int = 10) -> npt.NDArray[np.int64]: ...
    def fit(self, designs: _Designs, latency_ms: npt.ArrayLike) -> FewShotModel: ...

class AdaptedProxy:
    def predict(self, designs: _Designs) -> _Numbers: ...
    @property
    def scale(self) -> float: ...
    @property
    def kept_proxy(self) -> bool: ...
    @property
    def changed_operators(self) -> list[tuple[str, float]]: ...
    def save(self, file: _Path) -> None: ...

def adapt(
    space: Space, proxy: tuple[_Designs, npt.ArrayLike], target: tuple[_Designs, npt.ArrayLike], validation: int = 20
) -> AdaptedProxy: ...
def load_adapted(file: _Path, space: Space) -> AdaptedProxy: ...

class DesignPredictor:
    def predict(self, designs: _Designs) -> tuple[_Numbers, _Numbers, _Numbers]: ...
    @property
    def space(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def mape(self) -> float: ...
    @property
    def settings(self) -> str: ...
    def save(self, file: _Path) -> None: ...

def train_design_predictor(
    space: Space,
    designs: _Designs,
    latency_ms: npt.ArrayLike,
    device: str = "",
    method: str = "auto",
    encoding: str = "auto",
    seed: int = 1,
    threads: int = 0,
) -> DesignPredictor: ...
def load_design_predictor(file: _Path) -> DesignPredictor: ...
def inspect(model: _Path, batch: int = 1, dimensions: Mapping[str, int] = {}) -> _Report: ...
def convert(model: _Path, output: _Path, simplify: bool = False) -> _Report: ...
def kernels(model: _Path, rules: str = "engine", target: str = "") -> _Report: ...
def zoo(threads: int = 0) -> list[_Report]: ...
def write_zoo_network(
    name: str,
    output: _Path,
    width: float = 1.0,
    classes: int | None = None,
    image: int | None = None,
    channels: int | None = None,
    seed: int = 1,
) -> _Report: ...
def predict(predictor: _Path, models: Sequence[_Path], batch: int = 1) -> list[_Report]: ...
def correlate(table: _Path, space: str, devices: Sequence[str] = []) -> _Report: ...
def select_proxy(
    table: _Path, space: str, devices: Sequence[str] = [], samples: int | None = None, threshold: float = 0.9, seed: int = 1
) -> _Report: ...
def adapt_proxy(
    table: _Path,
    space: str,
    proxy: str,
    target: str,
    samples: int,
    validation: int = 20,
    trials: int = 1,
    output: _Path | None = None,
    seed: int = 1,
    threads: int = 0,
) -> _Report: ...
def few_shot(
    table: _Path,
    space: str,
    references: Sequence[str],
    target: str,
    samples: int = 10,
    trials: int = 1,
    seed: int = 1,
    threads: int = 0,
) -> _Report: ...

class StudyDialogue:
    def ask(self, count: int) -> _Report: ...
    def tell(self, trial: int, values: str) -> list[_Report]: ...
    def best(self) -> _Report: ...
    def show(self) -> _Report: ...
    def report(self, output: _Path) -> _Report: ...
    @property
    def name(self) -> str: ...

class Workplace:
    def __init__(self, store: str, program: _Path, progress: bool) -> None: ...
    def add_device(
        self,
        name: str,
        runtime: str = "auto",
        threads: int = 1,
        cores: str = "",
        precision: str = "fp32",
        cpu_quota: int | None = None,
        memory_limit: str = "",
        replace: bool = False,
    ) -> _Report: ...
    def devices(self) -> list[_Report]: ...
    def remove_device(self, name: str) -> None: ...
    def measure(
        self,
        models: Sequence[_Path],
        devices: Sequence[str] = ["local"],
        ops: bool = False,
        max_time_s: float = 30.0,
        target_ci: float = 2.0,
        batch: int = 1,
        dimensions: Mapping[str, int] = {},
        threads: int = 0,
    ) -> list[_Report]: ...
    def measure_designs(
        self,
        space: Space,
        designs: _Designs,
        devices: Sequence[str] = ["local"],
        ops: bool = False,
        max_time_s: float = 30.0,
        threads: int = 0,
    ) -> list[_Report]: ...
    def export(self, output: _Path, space: str = "") -> _Report: ...
    def run_model(
        self,
        model: _Path,
        folder: _Path,
        inputs: Sequence[tuple[str, _Path]],
        random_inputs: bool,
        device: str,
        batch: int,
        dimensions: Mapping[str, int],
        seed: int,
    ) -> _Report: ...
    def train_predictor(
        self,
        device: str,
        output: _Path,
        space: str = "",
        samples: int = 0,
        models: Sequence[_Path] = [],
        method: str = "auto",
        max_time_s: float = 30.0,
        seed: int = 1,
        threads: int = 0,
    ) -> _Report: ...
    def evaluate_predictor(
        self,
        predictor: _Path,
        space: str = "",
        samples: int = 0,
        models: Sequence[_Path] = [],
        max_time_s: float = 30.0,
        seed: int = 1,
        threads: int = 0,
    ) -> _Report: ...
    def search(
        self,
        space: str,
        latency: _Source,
        accuracy: _Source,
        energy: _Source | None = None,
        memory: _Source | None = None,
        budget_ms: float | None = None,
        budget_mj: float | None = None,
        budget_mb: float | None = None,
        pareto: bool = False,
        strategy: str = "",
        population: int = 1000,
        generations: int = 50,
        max_time_s: float = 10.0,
        seed: int = 1,
        threads: int = 0,
    ) -> _Report: ...
    def bisect(
        self,
        space: str,
        proxy: _Source,
        target: _Source,
        accuracy: _Source,
        budget_ms: float,
        max_measurements: int = 10,
        max_time_s: float = 10.0,
        seed: int = 1,
        threads: int = 0,
    ) -> _Report: ...
    def create_study(self, file: _Path) -> _Report: ...
    def studies(self) -> list[_Report]: ...
    def open_study(self, name: str, worker: str = "python", lease_s: float | None = None) -> StudyDialogue: ...
