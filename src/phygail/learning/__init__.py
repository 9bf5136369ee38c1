"""What trainings share: the run folder, the log, networks (torch; extra `learn`)."""
