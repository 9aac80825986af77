"""What failed first in a training: read from the pods that are there, once it has failed or restarts."""
