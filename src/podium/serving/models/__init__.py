"""The models that are served: how they are loaded, chosen for a query, compared and changed."""
