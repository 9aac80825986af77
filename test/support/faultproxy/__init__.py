"""A proxy before an API server that misbehaves on request: it cuts, delays, freezes, throttles, loses and forges.

It ends TLS on both sides, so that a fault can be placed at any byte of the plain HTTP conversation. To the API server
it is the user of the kubeconfig that it was given; its own kubeconfig needs no credentials.
"""
