"""What this Python's packages weigh without pip and setuptools, in MB: `python tools/weigh.py LIMIT`; exit 1 above."""

import subprocess
import sys
import sysconfig
from pathlib import Path

INSTALLERS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


def weigh(folder: Path) -> int:
    """Megabytes of a folder of packages, counted by du; what every fresh environment brings along is left out."""
    brought = [f"--exclude={name}" for name in (*INSTALLERS, "pip-*", "setuptools-*")]
    done = subprocess.run(["du", "-sm", *brought, str(folder)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


if __name__ == "__main__":
    limit, weight = int(sys.argv[1]), weigh(Path(sysconfig.get_paths()["purelib"]))
    print(f"{weight} MB of packages, at most {limit}")
    sys.exit(weight > limit)
