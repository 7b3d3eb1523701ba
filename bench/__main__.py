"""Run benchmarks by name, or all of them."""

import sys
from importlib import import_module

from bench.harness import write

NAMES = (
    "reader", "generation", "startup", "measures", "train", "split_share", "small", "accuracy", "tuned_peers",
    "time_to_accuracy", "defaults", "candidates", "scaling", "objectives", "combining", "neural", "scoring",
    "score_files", "many", "lambdas", "explain", "serving", "diagnostics", "out_of_core", "tuning",
    "distributed", "cluster_model", "text_index", "feature_pairs", "text_accuracy", "click_models", "clicks",
)  # fmt: skip


def main(names: list[str]) -> None:
    """Run benchmarks, and print and store their results."""
    unknown = set(names) - set(NAMES)
    if unknown:
        sys.exit(f"there is no benchmark {unknown.pop()!r}; there are {', '.join(NAMES)}")
    for name in names or NAMES:
        print(write(import_module(f"bench.{name}").run()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
