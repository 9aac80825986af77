"""Controllers: from a change to a key, from a key to a reconciler, and from its outcome to what happens next."""
