"""The HTTP service: models that rank documents for other programs (extra `serve`).

`podium.serving.app.Service` is the application, `podium.serving.running.run_service` runs it. Nothing is imported
here: a worker sets up the folder for its counts before it imports the rest.
"""
