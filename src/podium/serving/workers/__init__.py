"""The processes of a service: workers that answer, and a supervisor that replaces those that die."""
