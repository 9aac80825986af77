"""The commands: each turns its arguments into calls of `app`, and what comes back into words and an exit code."""
