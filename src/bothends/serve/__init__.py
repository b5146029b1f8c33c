"""A translation server: dynamic batching, several models, limits, and a page that shows it all.

    bothends serve

`server.serve` runs it; `app.create_app` is the application alone, for tests and other servers.
"""
