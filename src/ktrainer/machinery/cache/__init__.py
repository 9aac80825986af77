"""What a program knows of the cluster: informers that keep views of it in memory, and tell of every change."""
