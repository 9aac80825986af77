"""As whom requests are sent: tokens, certificates, and the plugins that print them."""
