"""The real control plane: which programs and manifests it needs, and how they get into the user's cache.

Each folder below holds the Go module that pins one product; the Python modules build it. Running what was built is the
business of `clusters`.
"""
