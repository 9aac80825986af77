"""The extension points, the values that travel through them, and the Framework that runs the phases.

A plugin author reads this package, and no other: `plugin` has the extension points, `info` what a plugin is handed.
"""
