"""How a view is filled and kept up to date: lists, watches, and what to do when either fails."""
