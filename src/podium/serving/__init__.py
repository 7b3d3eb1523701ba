"""The HTTP service, which ranks documents for other programs (extra `serve`).

`podium.serving.app.Service` is the application, and `podium.serving.running.run_service` runs it. This module imports
nothing, because a worker must set up the folder for its metrics before it imports prometheus_client.
"""
