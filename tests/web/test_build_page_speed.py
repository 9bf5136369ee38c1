"""The page keeps the figures of its benchmark, with a factor of two for what else runs on the machine."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

BUSIEST = 2.0  # processes per core beyond which a figure says nothing about the page
# Slow: beside other tests a figure says nothing about the page.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]


def benchmark(name: str) -> ModuleType:
    """A file of benchmarks/ as a module."""
    file = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_bench", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def skip_if_busy(name: str) -> None:
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    if busy > BUSIEST:
        pytest.skip(f"{busy:.1f} processes per core want to run: measure alone (python benchmarks/{name}.py)")


def test_500_uavs_in_two_lanes_are_fluent(browser):
    skip_if_busy("page")
    bench, seen = benchmark("page"), []
    for _ in range(bench.RUNS):
        seen.append(bench.measure_page(browser, bench.PAIRS[-1]))
        if not bench.slower(bench.best_of(seen), 2.0):
            return
    pytest.fail(f"{bench.slower(bench.best_of(seen), 2.0)}: {bench.best_of(seen)}")


def test_four_lanes_of_the_server_keep_their_rate():
    pytest.importorskip("uvicorn", reason="the extra web is not installed")
    skip_if_busy("serve")
    bench = benchmark("serve")
    rates = []
    while len(rates) < bench.RUNS:
        rates.append(bench.measure_server()[0])
        if rates[-1] >= bench.LEAST_MESSAGES_PER_S / 2:
            return
    pytest.fail(f"{max(rates):.0f} messages/s")
