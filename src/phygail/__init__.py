"""Get a shattered UAV swarm back into one network."""

__version__ = "0.1.0"
