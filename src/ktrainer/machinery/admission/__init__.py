"""The admission server: reviews come in over HTTPS, hooks answer."""
