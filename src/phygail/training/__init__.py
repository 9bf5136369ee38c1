"""Training of the learned methods; needs the extra `learn`."""
