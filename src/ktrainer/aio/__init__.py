"""What every asyncio program needs and the standard library lacks: clock, backoff, supervised tasks, signals.

Knows nothing of Kubernetes and opens no connections.
"""
