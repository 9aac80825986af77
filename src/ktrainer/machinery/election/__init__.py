"""Leader election with a Lease, and the fence that keeps a former leader from writing."""
