"""Spark forks its Python workers from this process, so the libraries are already loaded."""

from pyspark.daemon import manager

import podium.distributed.spark_estimators  # noqa: F401

if __name__ == "__main__":
    manager()
