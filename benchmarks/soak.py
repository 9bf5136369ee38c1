"""How many episodes a soak flies and checks per second of processor time: `python benchmarks/soak.py`."""

from __future__ import annotations

import time

from phygail.cli.soak import fly_batch

SEED, FIRST = 4242, 1000
RUNS = (  # name, method, whether filtered, episodes, limit
    ("compiled twin of reach-evolved, no filter", "reach-evolved", False, 1500, 300),
    ("compiled twin of reach-evolved, filter and contacts checked", "reach-evolved", True, 800, 100),
    ("phygail, a network", "phygail", False, 60, 8),
)


def main() -> None:
    """Compile on a few episodes first, then measure."""
    for name, method, safety, count, limit in RUNS:
        fly_batch(0, 5, SEED, method, "", safety)
        started = time.process_time()
        fly_batch(FIRST, count, SEED, method, "", safety)
        rate = count / (time.process_time() - started)
        print(f"{name}: {rate:.0f} episodes/s (limit: at least {limit})")


if __name__ == "__main__":
    main()
