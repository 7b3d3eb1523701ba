"""[B] §2.1: RankNet's time for a query, pair by pair and factored, against the number of documents."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims import Claim, always, compared
from experiments.runner import Experiment, Figure, Outcome
from experiments.work import Work
from podium.data import RankingData
from podium.data.datasets.artificial import artificial
from podium.errors import MissingExtraError
from podium.evaluation.tables import Table
from podium.objectives import Pairwise

Floats = NDArray[np.float64]
PLACE = "[B] §2.1"
FACTORED, PAIRS = "factored", "pair by pair"
FEATURES = 367  # as many as the web data of [W] has
CLOSE = 0.3  # how far an exponent may be from 1 or 2
AT_ONCE = 4096  # pairs that are handed to the net together
QUERIES = 20  # of a step
PAIRED = 400  # documents, about, that are trained pair by pair for one time: fewer queries of more documents
DIGITS = 4  # λ are computed in single precision


def run(work: Work) -> Outcome:
    """Compare the times of both forms for growing queries, and their gradients."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtraError("torch", "neural", "RankNet") from None
    sizes = work.pick(full=(100, 200, 400, 800), quick=(100, 200, 400))
    repetitions = work.pick(full=4, quick=1)
    rounds = [
        work.step(f"times, seed {seed}, repetition {k}", partial(_times, seed, k, sizes))
        for seed in work.seeds
        for k in range(repetitions)
    ]
    checked = work.pick(full=400, quick=60)
    same = work.steps("gradients", partial(_gradients_agree, checked))
    seconds = {form: np.array([one[form] for one in rounds]) for form in (FACTORED, PAIRS)}
    claims = _claims(seconds, sizes, len(work.seeds))
    claims.append(always(
        "both forms have the same gradients", PLACE, f"queries whose gradients do not agree to {DIGITS} digits",
        [one.count(False) for one in same], sum(map(len, same)),
    ))  # fmt: skip
    best = {form: 1e6 * results.min(axis=0) for form, results in seconds.items()}
    rows = [
        [size, float(best[FACTORED][k]), float(best[PAIRS][k]), float(best[PAIRS][k] / best[FACTORED][k])]
        for k, size in enumerate(sizes)
    ]
    table = Table(["documents", "factored, µs a query", "pair by pair, µs a query", "times as fast"], rows)
    settings = {
        "net": "10 tanh units", "features": FEATURES,
        "factored": f"an epoch of podium.RankNet, {QUERIES} queries a step, so that the fixed cost of a step is small",
        "pair by pair": f"both documents of each pair through the same net and back, {AT_ONCE} pairs at once",
        "times": f"CPU time of one thread, in each of {len(rounds)} repetitions the best of several epochs; the table "
                 "has the best of all",
    }  # fmt: skip
    return Outcome(claims, {"Time of training for a query": table}, [_figure(best, sizes)], settings, ["artificial"])


def _times(seed: int, repetition: int, sizes: tuple[int, ...]) -> dict[str, list[float]]:
    """Return seconds for a query in each form, for each number of documents."""
    results: dict[str, list[float]] = {FACTORED: [], PAIRS: []}
    for size in sizes:
        train = artificial(QUERIES, documents=size, features=FEATURES, seed=1000 * seed + repetition)
        some = train.select(range(max(1, PAIRED // size)))
        results[FACTORED].append(_best(partial(_factored_epochs, train), 6) / train.n_queries)
        results[PAIRS].append(_best(partial(_pair_epochs, some), 2) / some.n_queries)
    return results


def _best(epochs: Callable[[Callable[[], None], int], None], n: int) -> float:
    """Return seconds of the fastest of some epochs, after one that does not count."""
    marks: list[float] = []
    epochs(lambda: marks.append(time.process_time()), n + 1)
    return float(np.diff(marks).min())


def _factored_epochs(train: RankingData, mark: Callable[[], None], n: int) -> None:
    """Train with Podium; its validation data is too small to affect the time."""
    from podium.neural import NetTraining

    little = artificial(1, documents=5, features=FEATURES, part="valid")
    training = NetTraining(
        objective=Pairwise(), epochs=n, optimizer="sgd", learning_rate=1e-6, smallest_rate=1e-7, batch_queries=None,
        n_threads=1,
    )  # fmt: skip
    training.fit(train, valid={"valid": little}, observers=[lambda _: mark()])


def _pair_epochs(train: RankingData, mark: Callable[[], None], n: int) -> None:
    """Send each document of each pair through the net, forward and back."""
    import torch

    from podium.neural import Layers
    from podium.neural.model import torch_threads

    with torch_threads(1):
        net = Layers(train.n_features)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
        documents = torch.from_numpy(np.array(train.features))
        for _ in range(n):
            optimizer.zero_grad()
            for query in range(train.n_queries):
                rows = train.rows(query).copy()
                pair_by_pair(net, documents[rows], train.relevance[rows])
            optimizer.step()
            mark()


def pair_by_pair(net: Any, documents: Any, labels: NDArray[Any]) -> None:
    """Add ∂C/∂w of RankNet's cost of one query to the gradients of a net, pair by pair."""
    import torch

    i, j = np.nonzero(labels[:, None] > labels[None, :])
    for first in range(0, len(i), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        apart = net(documents[i[some]]) - net(documents[j[some]])
        cost = torch.nn.functional.softplus(-apart).sum()  # [B] §2: C = log(1 + e^{−(s_i − s_j)})
        cost.backward()  # type: ignore[no-untyped-call]


def factored(net: Any, documents: Any, data: RankingData) -> None:
    """Do the same by λ: one forward and one backward pass, Σ_i λ_i ∂s_i/∂w ([B] eq. 3)."""
    import torch

    scores = net(documents)
    lambdas = Pairwise().bind(data).gradients(scores.detach().numpy().astype(np.float64))[0]
    scores.backward(torch.from_numpy(-lambdas))


def _gradients_agree(n_queries: int, seed: int) -> list[bool]:
    """Return whether both forms have the same gradients, query by query, in double precision."""
    import torch

    from podium.neural import Layers

    data = artificial(n_queries, documents=(5, 40), features=8, seed=seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = Layers(8).double()
    results = []
    for query in range(n_queries):
        rows = data.rows(query)
        one = data.take(rows)
        documents, gradients = torch.from_numpy(np.array(one.features, np.float64)), []
        for do in (partial(factored, data=one), partial(pair_by_pair, labels=one.relevance)):
            for weights in net.parameters():
                weights.grad = torch.zeros_like(weights)  # stays where there are no pairs
            do(net, documents)
            parts: list[Any] = [weights.grad for weights in net.parameters()]
            gradients.append(np.concatenate([part.numpy().ravel() for part in parts]))
        size = max(float(np.abs(gradients[1]).max()), 1e-12)
        results.append(bool(np.abs(gradients[0] - gradients[1]).max() <= 10.0**-DIGITS * size))
    return results


def exponents(seconds: Floats, sizes: tuple[int, ...]) -> Floats:
    """Return the slope of log time over log documents, for each repetition (row)."""
    x = np.log(sizes) - np.log(sizes).mean()
    return np.asarray(np.log(seconds) @ x / (x @ x))


def _claims(seconds: dict[str, Floats], sizes: tuple[int, ...], n_seeds: int) -> list[Claim]:
    def by_seed(values: Floats) -> list[float]:
        return [float(part.mean()) for part in np.split(values, n_seeds)]

    claims = [
        compared(f"{form}, training time is close to {word} in the documents of a query", PLACE, "within",
                 f"slope on logarithmic axes − {power}", by_seed(exponents(seconds[form], sizes) - power), CLOSE)
        for form, power, word in ((PAIRS, 2, "quadratic"), (FACTORED, 1, "linear"))
    ]  # fmt: skip
    times = by_seed(seconds[PAIRS][:, -1] / seconds[FACTORED][:, -1])
    text = f"factored, training is much faster: more than twice as fast with {sizes[-1]} documents"
    return [*claims, compared(text, PLACE, "above", "how many times as fast", times, 2.0)]


def _figure(best: dict[str, Floats], sizes: tuple[int, ...]) -> Figure:
    rows = [
        {"x": size, "y": float(results[k]), "series": form}
        for form, results in best.items()
        for k, size in enumerate(sizes)
    ]
    title = f"Time of RankNet for a query ({PLACE})"
    return Figure("times", title, "documents of a query", "µs a query", rows, "points", log="xy")


EXPERIMENT = Experiment(
    title="The cost of factored RankNet against documents per query",
    place=PLACE,
    says="The λ of all pairs are summed for each document, and one backward pass for each document does the rest: "
    "training time drops from close to quadratic in the documents of a query to close to linear.",
    cuts="Pairs go through the net in batches, which is kinder to the old form than the paper's step after each pair. "
    "Sizes and queries a step were chosen after a first run: with one query a step, or from 50 documents on, the fixed "
    "cost of a step hides the growth (slopes of .2 and .7 up to 400 documents).",
    run=run,
)
