"""Keeps runtimes from being deleted while unfinished TrainJobs refer to them."""
