"""Random generators: one per purpose, derived from a seed and a path of keys.

Library code never seeds globally. A generator that depends only on (seed, keys) makes results independent of the
order in which episodes run and of the number of workers.
"""

from __future__ import annotations

import zlib

import numpy as np

from phygail.config import InputError


def generator(seed: int, *keys: int | str) -> np.random.Generator:
    """The generator for this seed and path of keys; equal arguments give equal streams.

    Args:
        seed: Non-negative seed chosen by the user.
        keys: Path of the purpose, e.g. ``("scenario", 100, 5000, 3)``. Strings enter by their CRC-32.
    """
    if seed < 0:
        raise InputError(f"seed {seed}: give a whole number, at least 0")
    path = tuple(zlib.crc32(k.encode()) if isinstance(k, str) else int(k) for k in keys)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))
