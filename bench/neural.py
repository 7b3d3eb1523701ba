"""Nets compared with padded pair matrices (speed), pair-by-pair training (speed) and trees (accuracy)."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import podium
from bench.harness import DATA, Report
from bench.ranking_sets import fold
from podium.evaluation.significance import paired_t, t_interval
from podium.measures import Ranking
from podium.neural import Layers, NetTraining, padded
from podium.objectives import Lambda, Objective, Pairwise

MEASURES = ("ndcg@1", "ndcg@3", "ndcg@10")


# --- an epoch against padded lists and pair matrices, as in allRank


def pair_matrix_loss(scores: Tensor, labels: Tensor, present: Tensor, measured: bool) -> Tensor:
    """Return LambdaRank's or RankNet's cost of padded lists: a matrix of pairs for each query, left to autograd."""
    low = torch.finfo(scores.dtype).min
    masked = scores.masked_fill(~present, low)
    order = masked.argsort(dim=1, descending=True)
    ranked, graded = masked.gather(1, order), labels.gather(1, order)
    is_ranked = present.gather(1, order)
    better = (graded[:, :, None] > graded[:, None, :]) & is_ranked[:, :, None] & is_ranked[:, None, :]
    costs = nn.functional.softplus(-(ranked[:, :, None] - ranked[:, None, :]))
    if measured:
        gains = torch.where(is_ranked, 2.0**graded - 1, 0.0)
        discounts = 1 / torch.log2(2.0 + torch.arange(gains.shape[1]))
        best = (gains.sort(dim=1, descending=True)[0] * discounts).sum(dim=1).clamp(min=1e-9)
        apart = (gains[:, :, None] - gains[:, None, :]).abs() * (discounts[:, None] - discounts[None, :]).abs()
        costs = costs * apart / best[:, None, None]
    return costs.masked_fill(~better, 0.0).sum() / len(scores)


def padded_epochs(
    train: podium.RankingData, valid: podium.RankingData, epochs: int, batch: int, measured: bool
) -> tuple[list[float], float]:
    """Return seconds of each epoch, and the best NDCG@10 on validation data."""
    torch.manual_seed(0)
    net = Layers(train.n_features)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    middle, size = train.features.mean(axis=0), train.features.std(axis=0)
    documents = torch.from_numpy(((train.features - middle) / size)[train.canonical_order])
    lists, present = padded(documents, torch.from_numpy(np.array(train.offsets)))
    labels = torch.zeros(present.shape)
    labels[present] = torch.from_numpy(train.relevance[train.canonical_order])
    judged = torch.from_numpy((valid.features - middle) / size)
    seconds, best = [], 0.0
    for _ in range(epochs):
        started = time.perf_counter()
        for batch_lists in torch.randperm(len(lists)).split(batch):
            loss = pair_matrix_loss(net(lists[batch_lists]), labels[batch_lists], present[batch_lists], measured)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.inference_mode():
            scores = net(judged).double().numpy()
        best = max(best, float(np.nanmean(podium.NDCG(10).values(Ranking(valid, scores)))))
        seconds.append(time.perf_counter() - started)
    return seconds, best


def our_epochs(
    train: podium.RankingData, valid: podium.RankingData, epochs: int, batch: int, objective: Objective
) -> tuple[list[float], float]:
    """Return the same for Podium."""
    marks: list[float] = []
    training = NetTraining(objective=objective, epochs=epochs, batch_queries=batch, halve_after=epochs).fit(
        train, valid={"valid": valid}, observers=[lambda _: marks.append(time.perf_counter())]
    )
    return np.diff(marks).tolist(), max(training.history["valid/ndcg@10"])


def epochs_rows() -> list[dict[str, Any]]:
    """Measure 10,000 queries × 50 documents × 50 features, the default net, 32 (default) and 64 queries per step."""
    train, valid, few = podium.artificial(10_000), *(podium.artificial(n, part="valid") for n in (2_000, 20))
    rows = []
    for name, objective in (("RankNet", Pairwise()), ("LambdaRank", Lambda("ndcg", normalize=False))):
        for batch in (32, 64):
            measured, ours, theirs = name == "LambdaRank", [], []
            for _ in range(3):
                ours += our_epochs(train, few, 4, batch, objective)[0]
                theirs += padded_epochs(train, few, 4, batch, measured)[0][1:]
            best = our_epochs(train, valid, 5, batch, objective)[1]
            other_best = padded_epochs(train, valid, 5, batch, measured)[1]
            rows.append({
                "what": f"epoch of {name}, 10,000 × 50 × 50, {batch} queries a step", "seconds": f"{min(ours):.2f}",
                "result": f"padded pair matrices {min(theirs):.2f} s: {min(theirs) / min(ours):.1f} ×; best NDCG@10 "
                          f"in 5 epochs {best:.4f} and {other_best:.4f}",
            })  # fmt: skip
    return rows


# --- factored against pairwise: [B] §2.1


def pairwise_epoch(train: podium.RankingData, net: Layers) -> None:
    """Train one epoch with a forward and backward pass for each document of each pair, and one step per query."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    documents = torch.from_numpy(np.array(train.features))
    for q in range(train.n_queries):
        rows = train.rows(q)
        labels = train.relevance[rows]
        i, j = np.nonzero(labels[:, None] > labels[None, :])
        if not len(i):
            continue
        optimizer.zero_grad()
        apart = net(documents[rows[i]]) - net(documents[rows[j]])
        nn.functional.softplus(-apart).sum().backward()
        optimizer.step()


def factored_rows() -> list[dict[str, Any]]:
    """Measure the time of an epoch against documents per query."""
    sizes = (25, 50, 100, 200, 400, 800)
    times: dict[str, list[float]] = {"factored": [], "pair by pair": []}
    for size in sizes:
        train = podium.artificial(100, documents=size, features=50)
        for name, seconds in times.items():
            marks: list[float] = []
            if name == "factored":
                training = NetTraining(
                    objective=Pairwise(),
                    epochs=4,
                    optimizer="sgd",
                    learning_rate=1e-5,
                    smallest_rate=1e-6,
                    batch_queries=1,
                )
                training.fit(train, observers=[lambda _, m=marks: m.append(time.perf_counter())])
            else:
                net = Layers(50)
                for _ in range(4):
                    pairwise_epoch(train, net)
                    marks.append(time.perf_counter())
            seconds.append(float(np.diff(marks).min()))
    slopes = {name: np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0] for name, seconds in times.items()}
    rows = [
        {"what": f"epoch of RankNet, 100 queries × {size} documents", "seconds": f"{fast:.3f}",
         "result": f"pair by pair {slow:.3f} s: {slow / fast:.1f} ×"}
        for size, fast, slow in zip(sizes, times["factored"], times["pair by pair"], strict=True)
    ]  # fmt: skip
    rows[-1]["result"] += "; slopes from 200 on: " + ", ".join(f"{name} {slope:.2f}" for name, slope in slopes.items())
    return rows


# --- accuracy against trees: [W] 5.3


def models(real: bool) -> dict[str, Any]:
    """Return the papers' systems, with less capacity on small real data."""
    net: dict[str, Any] = {"epochs": 100, "hidden": 10, "patience": 20}
    if real:
        net |= {"l2": 1e-3, "learning_rate": 3e-3, "batch_queries": 8}
    trees: dict[str, Any] = {"split_fraction": 1.0} | ({"patience": 50} if real else {})
    return {
        "RankNet": podium.RankNet(**net),
        "LambdaRank, NDCG": podium.LambdaRank(**net),
        "LambdaRank, ERR": podium.LambdaRank(objective="lambda(err, normalize=false)", **net),
        "LambdaRank, AP": podium.LambdaRank(objective="lambda(ap, normalize=false)", **net),
        "LambdaMART": podium.LambdaMART(1000, 10, 0.1, **trees),
        "McRank": podium.McRank(1000 if not real else 300, 10, 0.05, **trees),
    }


def measured(model: Any, data: podium.RankingData) -> dict[str, Any]:
    """Return the values of each query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", podium.PodiumWarning)  # of ties
        return podium.evaluate(data, model.predict(data), MEASURES).values


def table(what: str, values: dict[str, dict[str, Any]], seconds: dict[str, float]) -> list[dict[str, Any]]:
    """Return means with 95% intervals, and the difference of each from LambdaRank."""
    base = values["LambdaRank, NDCG"]["ndcg@10"]
    rows = []
    for name, by_measure in values.items():
        shown = []
        for measure in MEASURES:
            low, high = t_interval(by_measure[measure])
            shown.append(f"{measure.upper()} {by_measure[measure].mean():.4f} ({low:.4f} to {high:.4f})")
        apart = by_measure["ndcg@10"] - base
        note = (
            ""
            if name == "LambdaRank, NDCG"
            else (f"; NDCG@10 against LambdaRank {apart.mean():+.4f}, p = {paired_t(apart):.2g}")
        )
        rows.append({"what": f"{what}: {name}", "seconds": f"{seconds[name]:.1f}", "result": ", ".join(shown) + note})
    return rows


def artificial_rows() -> list[dict[str, Any]]:
    """Measure on [W]'s artificial data: 10,000 training, 5,000 validation and 10,000 test queries."""
    train, valid, test = (
        podium.artificial(n, part=part) for part, n in (("train", 10_000), ("valid", 5_000), ("test", 10_000))
    )
    values, seconds = {}, {}
    for name, model in models(real=False).items():
        started = time.perf_counter()
        model.fit(train, valid=valid)
        seconds[name] = time.perf_counter() - started
        values[name] = measured(model, test)
    return table("artificial, 10K/5K/10K", values, seconds)


def fold_rows() -> list[dict[str, Any]]:
    """Measure on five folds of MQ2008 and of OHSUMED, with their test queries pooled."""
    rows = []
    for data_set in ("mq2008", "ohsumed"):
        values: dict[str, dict[str, list[Any]]] = {}
        seconds: dict[str, float] = {}
        for number in range(1, 6):
            train, valid, test = fold(data_set, number)
            for name, model in models(real=True).items():
                started = time.perf_counter()
                model.fit(train, valid=valid)
                seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - started
                for measure, of_queries in measured(model, test).items():
                    values.setdefault(name, {}).setdefault(measure, []).append(np.nan_to_num(of_queries))
        pooled = {name: {m: np.concatenate(v) for m, v in by_measure.items()} for name, by_measure in values.items()}
        rows += table(f"{data_set}, five folds", pooled, seconds)
    return rows


def run() -> Report:
    """Run all parts."""
    rows = epochs_rows() + factored_rows() + artificial_rows() + (fold_rows() if DATA.exists() else [])
    return Report(
        "neural", "Nets: speed and accuracy",
        [{key: row[key] for key in ("what", "seconds", "result")} for row in rows],
        [
            "Epochs: best of nine (three runs in turn, without their first epochs), Adam, the same net of 10 hidden "
            "units. The comparison follows allRank: padded lists, a matrix of pairs for each query, gradients by "
            "autograd. Factored and pair by pair: SGD, one step per query, best of three epochs after the first. "
            "Plot: neural.svg.",
            "Accuracy: 95% intervals over test queries, paired t-tests. Seconds are those of training, for folds of "
            "all five. Nets have 10 hidden units and Adam, and validation data chooses the epoch by NDCG@10. Trees "
            "have 10 leaves and [W]'s 1000 rounds, or 300 for McRank on folds (McRank: a tree per class and round, "
            "rate .05); validation data chooses their number.",
        ],
    )  # fmt: skip
