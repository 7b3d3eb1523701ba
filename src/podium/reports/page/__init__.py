"""Reports: `building` collects the sections (`contents`) and renders them with `templates`."""

from podium.reports.page.building import comparison_report, report

__all__ = ["comparison_report", "report"]
