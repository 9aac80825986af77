"""Where the API server is and who we are, from kubeconfig files or from the pod that we run in."""
