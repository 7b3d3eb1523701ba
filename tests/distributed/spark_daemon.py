"""Spark forks its Python workers from this process: they find the libraries loaded."""

from pyspark.daemon import manager

import podium.distributed.spark_estimators  # noqa: F401

if __name__ == "__main__":
    manager()
