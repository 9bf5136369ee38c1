"""What a report needs of a training: copies of its settings and log, beside the rows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from phygail.files import make_folder, read_json

SETTINGS, LOG = "training.json", "log.jsonl"


def copy_training(run: Path, folder: Path) -> None:
    """Copy settings and log of a run."""
    make_folder(folder)
    for source, target in (("config.json", SETTINGS), ("log.jsonl", LOG)):
        shutil.copyfile(run / source, folder / target)


def budget_text(folder: Path) -> str:
    """The budget of a training, without what makes the variant and its seed."""
    about: dict[str, Any] = read_json(folder / SETTINGS)
    config = about["config"]
    taught = config.get("teach_rounds", 0)  # logs of older trainings lack it
    return (
        f"{config['epochs']} epochs of {config['worlds']} x {config['horizon']} steps, "
        f"{config['ppo_epochs']} PPO passes, warm start of {config['clone_passes']} passes"
        + (f" and {taught} rounds of own flights with SIDR as teacher, " if taught else ", ")
        + f"experts {about['experts']['content_sha256'][:12]}"
    )
