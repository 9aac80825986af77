"""What a program serves to those who look after it: health, metrics, and the HTTP server below both."""
