"""Serving certificates: made, shared, trusted, renewed; or read from files."""
