"""Environments for learning libraries; each needs the extra `env`, which this folder itself does not import."""
