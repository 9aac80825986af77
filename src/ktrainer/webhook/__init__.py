"""Admission of our three kinds: thin, because the runtime judges. Which requests come here is in `registration`."""
