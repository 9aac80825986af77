"""The progress server: training pods report here how far they are, and it becomes `status.trainerStatus`."""
