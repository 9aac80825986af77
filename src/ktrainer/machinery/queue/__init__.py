"""The workqueue: keys that wait for a worker, for their time, or for their next try."""
