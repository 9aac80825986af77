"""The only package that opens connections to an API server.

What comes back are bytes: decoding is left to those who know which fields they need. Failures are either an answer
(`ktrainer.kube.errors`) or the lack of one (`ktrainer.client.errors`); nothing of the HTTP library leaves the package.
"""
