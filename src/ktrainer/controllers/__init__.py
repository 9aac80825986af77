"""The controllers of our kinds: decisions as pure functions, and the reconcilers that carry them out."""
