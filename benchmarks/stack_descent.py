"""One iteration of the planners' optimization (256 units): StackDescent against autograd with torch's Adam.

Run: OMP_NUM_THREADS=1 python benchmarks/stack_descent.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from phygail.methods.gcn_planners.network import ConvolutionStack, StackDescent

ITERATIONS = {10: 400, 100: 200, 475: 40}  # by alive UAVs


def seconds(work: Callable[[], None], times: int) -> float:
    work()
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times


def main() -> None:
    torch.set_num_threads(1)
    for n, times in ITERATIONS.items():
        draw = torch.Generator().manual_seed(0)
        inputs, operator = torch.randn(n, 2, generator=draw), torch.full((n, n), 1 / n)
        slope = torch.randn(n, 2, generator=draw)
        network = ConvolutionStack(256, draw)
        adam = torch.optim.Adam(network.parameters(), lr=1e-3)

        def with_autograd(network=network, adam=adam, inputs=inputs, operator=operator, slope=slope) -> None:
            adam.zero_grad()
            network(inputs, operator).backward(slope)
            adam.step()

        descent = StackDescent(ConvolutionStack(256, draw), inputs, operator, rate=1e-3, gather_last=False)

        def without(descent=descent, slope=slope) -> None:
            descent.forward()
            descent.step(slope)

        slow, fast = seconds(with_autograd, times), seconds(without, times)
        print(f"{n} alive: autograd {slow * 1e3:.2f} ms, StackDescent {fast * 1e3:.2f} ms, ratio {slow / fast:.2f}")


if __name__ == "__main__":
    main()
