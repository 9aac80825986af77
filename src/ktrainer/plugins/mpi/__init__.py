"""MPI: a launcher starts processes on the nodes over SSH, with the keys and the list of hosts that we make."""
