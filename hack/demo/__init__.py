"""`make run`: ktrainer on a cluster of its own, with a TrainJob of each shipped runtime, for people to look at."""
