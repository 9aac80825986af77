"""The plugins: one module or folder each. None knows another; `registry` lists them in order."""
