"""Charts of results, by Vega-Altair (extra `report`)."""

from podium.reports.charts import save_chart

__all__ = ["save_chart"]
