"""Networks and how their weights are kept (torch; extra `learn`)."""
