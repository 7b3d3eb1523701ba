"""The HTTP service: models that rank documents for other programs (extra `serve`).

`podium.serving.app.create_app` makes the application, `podium.serving.workers.supervisor.serve` runs it. Nothing is
imported here: workers set up what they share before they import the rest.
"""
