"""How many messages a second `phygail serve` sends, and how soon it answers meanwhile: `python benchmarks/serve.py`."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from websockets.sync.client import ClientConnection, connect

from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario, scenario_to_json

METHODS = ["phygail-taught", "reach-evolved", "reach", "sidr"]  # the largest network first
UAVS, DAMAGE = 200, 0.75
LEAST_MESSAGES_PER_S = 30.0
WATCH_S = 6.0
RUNS = 3  # the best of them counts


def messages_per_s(socket: ClientConnection) -> float:
    """Frames of a race of four lanes, from the first one on."""
    scenario = scenario_to_json(draw_scenario(UAVS, DAMAGE, generator(0, "benchmark", "serve")))
    socket.send(json.dumps({"type": "fly", "race": 1, "scenario": scenario, "methods": METHODS, "safety": True}))
    while isinstance(socket.recv(timeout=60), str):
        pass
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < WATCH_S:
        try:
            socket.recv(timeout=1.0)
        except TimeoutError:
            break
        count += 1
    return count / (time.perf_counter() - begun)


def answer_ms(address: str) -> float:
    """Time until a second client is answered while the first one's race is flown."""
    with connect(address) as socket:
        begun = time.perf_counter()
        socket.send("garbage")
        socket.recv(timeout=10)
        return 1e3 * (time.perf_counter() - begun)


def measure_server() -> tuple[float, float]:
    """(messages per second, ms until another client is answered) of a server of its own."""
    command = [sys.executable, "-m", "phygail", "serve", "--quiet", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip().replace("http", "ws") + "race"
        with connect(address, max_size=None) as socket:
            return messages_per_s(socket), answer_ms(address)
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    measured = [measure_server() for _ in range(RUNS)]
    rate, answer = max(rate for rate, _ in measured), min(answer for _, answer in measured)
    print(
        f"serve: {rate:.0f} messages/s with {len(METHODS)} lanes (limit {LEAST_MESSAGES_PER_S:g}), "
        f"answer {answer:.1f} ms"
    )
    return int(rate < LEAST_MESSAGES_PER_S)


if __name__ == "__main__":
    sys.exit(main())
