"""A run on disk: one full state, overwritten whole, and the policies to fly. Safetensors and JSON, never pickle.

All randomness derives from (seed, purpose, epoch) and the worlds start anew with every epoch, so networks, optimizers,
the epoch and the best score are everything: a run that is killed and resumed continues bit for bit.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from phygail.config import InputError
from phygail.files import whole_file
from phygail.models.export import actor_config
from phygail.models.weights import save_weights
from phygail.training.holdout import Score
from phygail.training.learner import Learner
from phygail.training.profiles import TrainConfig

STATE = "state.safetensors"
BEST = "best.safetensors"  # the policy with the best validation
LATEST = "latest.safetensors"  # the policy of the last validated epoch
SNAPSHOTS = "policies"  # folder of policies kept along the way
FORMAT = 1
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW remembers of a parameter


def save_state(folder: Path, learner: Learner) -> None:
    """Overwrite the full state; a kill at any moment leaves the old one or the new one."""
    tensors: dict[str, Tensor] = {}
    for name, network in learner.networks.items():
        tensors |= {f"{name}/{key}": value.detach().contiguous() for key, value in network.state_dict().items()}
        for number, moments in learner.optimizers[name].state_dict()["state"].items():
            tensors |= {f"optimizer/{name}/{number}/{key}": moments[key].contiguous() for key in _MOMENTS}
    progress = {
        "format": FORMAT, "epoch": learner.epoch, "best_epoch": learner.best_epoch,
        "best": asdict(learner.best) if learner.best else None,
    }  # fmt: skip
    with whole_file(folder / STATE) as draft:
        draft.write_bytes(safetensors.torch.save(tensors, metadata={"progress": json.dumps(progress)}))


def load_state(folder: Path, learner: Learner) -> None:
    """Fill a fresh learner with the state of a run."""
    path = folder / STATE
    try:
        with safetensors.safe_open(path, "pt") as file:
            progress: dict[str, Any] = json.loads(file.metadata()["progress"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (the file is no mapping)
        if progress["format"] != FORMAT:
            raise KeyError(f"format {progress['format']}")
        for name, network in learner.networks.items():
            network.load_state_dict(_under(tensors, f"{name}/"))
            _load_moments(learner.optimizers[name], _under(tensors, f"optimizer/{name}/"))
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
        raise InputError(
            f"cannot resume from {path} ({' '.join(str(error).split())[:120]}): start a new run"
        ) from None  # fmt: skip
    learner.epoch, learner.best_epoch = progress["epoch"], progress["best_epoch"]
    learner.best = Score(**progress["best"]) if progress["best"] else None


def save_policy(path: Path, learner: Learner, config: TrainConfig, **facts: Any) -> None:
    """Write the actor as it is now, ready for `phygail export`, with all that made it in its JSON."""
    about = {"training": asdict(config), "epoch": learner.epoch, **facts}
    save_weights(path, learner.actor.state_dict(), actor_config(learner.actor, config.graph_spec, **about))


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _load_moments(optimizer: torch.optim.Optimizer, moments: dict[str, Tensor]) -> None:
    """Moments by "number/key"; none before the first step."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in moments.items():
        number, key = name.split("/")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
