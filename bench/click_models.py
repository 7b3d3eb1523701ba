"""Click models: their predictions of real clicks, the quality of their labels, and their speed.

PyClick (Markov and others, github.com/markovi/PyClick) is timed as well if its folder is on PYTHONPATH. The package of
the same name on PyPI is a different project.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from bench.harness import DATA, Report, in_child

SESSIONS, TIMED_IN_PYTHON = 1_000_000, 500
FOLDS = 2  # of the queries of real sessions
USERS = 30  # simulated impressions of each query of MQ2008
ATTRACTS, SATISFIES, CONTINUES = np.array([0.1, 0.4, 0.8]), np.array([0.2, 0.5, 0.9]), 0.9


def models() -> dict[str, Any]:
    """Return a new model of each kind."""
    from podium.clicks import DBN, Cascade, DependentClicks, PositionBased, UserBrowsing

    return {
        "PositionBased": PositionBased(), "PositionBased, intervention": PositionBased(by="intervention"),
        "Cascade": Cascade(), "DependentClicks": DependentClicks(), "DBN, simplified": DBN(simplified=True),
        "DBN": DBN(), "UserBrowsing": UserBrowsing(),
    }  # fmt: skip


def yandex(parts: tuple[str, ...]) -> Any:
    """Return the rows of real sessions, sorted as a log sorts them."""
    import pandas as pd

    frames = [pd.read_csv(DATA / "yandex_sessions" / f"{part}.tsv.gz", sep="\t").assign(part=part) for part in parts]
    frame = pd.concat(frames)
    frame["session"] = frame["part"] + frame["session"].astype(str).str.zfill(6)
    return frame.sort_values(["session", "position"], ignore_index=True)


def log_of(frame: Any, query: Any, document: Any, **others: Any) -> Any:
    """Return the log of a frame of sessions, whose rows it must keep in order."""
    from podium.clicks import ClickLog

    log = ClickLog.from_arrays(
        impression=frame["session"], query=query, document=document, position=frame["position"],
        clicked=frame["clicked"], **others,
    )  # fmt: skip
    assert np.array_equal(log.position, frame["position"])
    assert np.array_equal(log.clicked, frame["clicked"] == 1)
    return log


def log_of_classes(part: str) -> Any:
    """Return a log in which all results of the same snippet type and grade are one document."""
    frame = yandex((part,))
    classes, codes = np.unique(frame["snippet_type"] + " " + frame["human_grade"].astype(str), return_inverse=True)
    log = log_of(frame, np.full(len(frame), "all"), frame["position"].astype(str))
    pairs = codes.astype(np.int32)
    return replace(
        log, document=pairs, pairs=pairs, documents=tuple(map(str, classes)),
        pair_queries=np.zeros(len(classes), np.int32), pair_documents=np.arange(len(classes), dtype=np.int32),
    )  # fmt: skip


def prediction() -> dict[str, dict[str, Any]]:
    """Return how well each model predicts held-out sessions."""
    train, test = log_of_classes("train"), log_of_classes("test")
    rates = np.bincount(train.position, train.clicked)[1:] / np.bincount(train.position)[1:]
    chances = np.where(test.clicked, rates[test.position - 1], 1 - rates[test.position - 1])
    shown, clicks = np.bincount(train.pairs), np.bincount(train.pairs, train.clicked)
    both = _rate_of_document_and_position(train, test, rates)
    table = {
        "click rate of the position": {
            "perplexity": f"{_perplexity(chances, test):.4f}",
            "log-likelihood": f"{np.log(chances).sum() / test.n_impressions:.3f}",
        },
        "click rate of the document at the position": {
            "perplexity": f"{_perplexity(both, test):.4f}",
            "log-likelihood": f"{np.log(both).sum() / test.n_impressions:.3f}",
        },
        "click rate of the document": {"grades 0 to 4": _of_grades(train.documents, clicks / shown)},
    }  # fmt: skip
    for name, model in models().items():
        values = model.fit(train).attractiveness
        table[name] = {
            "perplexity": f"{model.perplexity(test).overall:.4f}",
            "log-likelihood": f"{model.log_likelihood(test) / test.n_impressions:.3f}",
            "grades 0 to 4": _of_grades(values.document, values.value),
        }
    return table


def _perplexity(chances: Any, log: Any) -> float:
    """Return perplexity: the mean over positions of 2^(−mean of log₂ P(observed click or no click))."""
    of_positions = [2 ** -np.log2(chances[log.position == r]).mean() for r in np.unique(log.position)]
    return float(np.mean(of_positions))


def _rate_of_document_and_position(train: Any, test: Any, rates: Any) -> Any:
    """Return P(click or no click) by the click rate of a document at a position, smoothed by ten impressions."""
    n_positions = len(rates)
    cells = train.pairs * n_positions + train.position - 1
    n_cells = len(train.documents) * n_positions
    shown, clicks = np.bincount(cells, minlength=n_cells), np.bincount(cells, train.clicked, n_cells)
    table = (clicks.reshape(-1, n_positions) + 10 * rates) / (shown.reshape(-1, n_positions) + 10)
    assert train.documents == test.documents
    chances = table[test.pairs, test.position - 1]
    return np.where(test.clicked, chances, 1 - chances)


def _of_grades(documents: Any, values: Any) -> str:
    by_document = dict(zip(documents, values, strict=True))
    return " ".join(f"{by_document[f'WEB {grade}']:.2f}".lstrip("0") for grade in range(5))


def agreement() -> dict[str, dict[str, Any]]:
    """Return how labels of each model agree with human grades; a result is known only by its query and position."""
    frame = yandex(("train", "test"))
    log = log_of(
        frame, frame["query"].astype(str), frame["snippet_type"] + " " + frame["position"].astype(str),
        dwell=frame["dwell_s"], click_order=frame["click_order"],
    )  # fmt: skip
    grade = frame["human_grade"].to_numpy()
    labels: dict[str, Callable[[], Any]] = (
        {
            "as shown": lambda: -log.position.astype(np.float64),
        }
        | {
            name: lambda kind=kind: log.labels(kind, min_impressions=1).of_rows
            for name, kind in (
                ("click rate of the document", "ctr"),
                ("last-click rate", "last_click"),
                ("COEC", "coec"),
                ("dwell grade", "dwell"),
                ("preferred to skipped", "skip_above"),
            )
        }
        | {
            name: lambda model=model: model.fit(log).labels(log)
            for name, model in models().items()
            if "intervention" not in name
        }
    )
    return {name: _agreement(_filled(make()), grade, log) for name, make in labels.items()}


def _filled(labels: Any) -> Any:
    """Return labels, with their mean in place of unknown ones."""
    return np.where(np.isnan(labels), np.nanmean(labels), labels)


def _agreement(label: Any, grade: Any, log: Any) -> dict[str, Any]:
    from scipy.stats import kendalltau

    import podium

    judged = np.flatnonzero(grade >= 0)
    data = podium.RankingData(np.zeros((len(judged), 1)), grade[judged], qid=log.impression[judged])
    taus: dict[str, list[float]] = {"τ in a session": [], "τ at a position": []}
    for key, groups in zip(taus, (log.impression, log.position), strict=True):
        order = judged[np.argsort(groups[judged], kind="stable")]
        for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            if len(set(grade[rows])) > 1:
                taus[key].append(float(np.nan_to_num(kendalltau(label[rows], grade[rows]).statistic)))
    ndcg = podium.evaluate(data, label[judged], "ndcg@10", drop_uniform=True).means["ndcg@10"]
    return {key: f"{np.mean(values):.3f}" for key, values in taus.items()} | {"NDCG@10 by grades": f"{ndcg:.4f}"}


def session_rankers() -> dict[str, dict[str, Any]]:
    """Return NDCG by grades of rankers of real sessions, trained on each kind of label, and tested on other queries.

    Features are the snippet type and the past clicks on the query's result at the same position, without and with the
    position, which is the search engine's own ranking. No query is in two folds: half of the queries of the test file
    are also in the training file, mostly with the same grades.
    """
    import pandas as pd

    import podium

    frame = yandex(("test", "train"))  # in alphabetical order, as sessions are sorted
    places = frame["snippet_type"] + " " + frame["position"].astype(str)
    log = log_of(frame, frame["query"].astype(str), places, time=frame.groupby("session").ngroup() + 1)
    grade = frame["human_grade"].to_numpy(np.float64)
    past = log.features([
        "rate(click, by=query+document)", "count(click, by=query+document)", "count(impression, by=query)",
        "count(click, by=query)", "rate(click, by=query+document, smoothing=1)",
    ])  # fmt: skip
    kinds = pd.get_dummies(frame["snippet_type"]).to_numpy(np.float64)
    without = np.column_stack([kinds, past.features])
    inputs = {"without": without, "with": np.column_stack([without, log.position])}
    fold_of = frame["query"].to_numpy() % FOLDS
    results: dict[str, dict[str, list[float]]] = {}
    for (column, features), fold in product(inputs.items(), range(FOLDS)):
        judged = np.flatnonzero((fold_of == fold) & (grade >= 0))
        test = podium.RankingData(features[judged], grade[judged], qid=log.impression[judged])
        scores = {
            name: model.predict(test) for name, model in _of_sessions(log, features, grade, fold_of != fold).items()
        }
        scores["as shown"] = -log.position[judged].astype(np.float64)
        scores["past click rate"] = np.nan_to_num(past.features[judged, 4])
        for name, values in scores.items():
            result = podium.evaluate(test, values, "ndcg@10", drop_uniform=True)
            results.setdefault(name, {}).setdefault(column, []).append(result.means["ndcg@10"])
    return {
        name: {f"sessions: NDCG@10 {column} position": f"{np.mean(values):.4f}" for column, values in columns.items()}
        for name, columns in results.items()
    }


def _of_sessions(log: Any, features: Any, grade: Any, rows: Any) -> dict[str, Any]:
    """Return a ranker for each kind of label of some rows, which are whole impressions."""
    from podium.objectives import Debiased, Lambda

    part = log.select(rows[log.starts[:-1]])
    features, grade = features[rows], grade[rows]
    clicks = part.ranking_data(features, labels="clicked")
    judged = np.flatnonzero(grade >= 0)
    labels = {name: model.fit(part).labels(part) for name, model in models().items() if "intervention" not in name}
    labels["click rate of the document"] = part.labels("ctr", min_impressions=1).of_rows
    labels["COEC"] = np.minimum(part.labels("coec", min_impressions=1).of_rows / 5, 1)  # cndcg takes labels up to 1
    rankers = {name: fit(clicks.replace(labels={"clicks": values}), Lambda("cndcg")) for name, values in labels.items()}
    rankers["clicks as they are"] = fit(clicks, Lambda("ndcg"))
    rankers["clicks, debiased"] = fit(clicks, Debiased(Lambda("ndcg")))
    rankers["grades"] = fit(clicks.replace(relevance=grade).take(judged), Lambda("ndcg"))
    return rankers


def rankers() -> dict[str, dict[str, Any]]:
    """Return NDCG of rankers that were trained on the labels of each model, from simulated users of MQ2008."""
    import podium

    found: dict[str, list[float]] = {}
    for number, fold in enumerate(podium.data.datasets.folds(DATA / "mq2008")):
        for name, model in _trained(fold.train, number).items():
            scores = model.predict(fold.test)
            found.setdefault(name, []).append(podium.evaluate(fold.test, scores, "ndcg@10").means["ndcg@10"])
    return {name: {"MQ2008: NDCG@10": f"{np.mean(values):.4f}"} for name, values in found.items()}


def _trained(train: Any, seed: int) -> dict[str, Any]:
    from podium.objectives import Debiased, Lambda

    log, rows = simulated_users(train, seed)
    fitted = {name: model.fit(log) for name, model in models().items()}
    labels = {name: model.labels(log) for name, model in fitted.items()}
    labels["click rate of the document"] = log.labels("ctr", min_impressions=1).of_rows
    places = np.unique(log.pairs, return_index=True)[1]  # a row of each pair
    data = train.take(rows[places])
    rankers = {
        name: fit(data.replace(labels={"clicks": values[places]}), Lambda("cndcg")) for name, values in labels.items()
    }
    clicks = log.ranking_data(train.features[rows], labels="clicked")
    propensities = fitted["PositionBased"].propensities(log)
    rankers["clicks, debiased"] = fit(clicks, Debiased(Lambda("ndcg"), propensities=propensities))
    rankers["clicks as they are"] = fit(clicks, Lambda("ndcg"))
    rankers["grades"] = fit(data, Lambda("ndcg"))
    return rankers


def fit(data: Any, objective: Any) -> Any:
    """Train a small ranker."""
    import podium

    return podium.LambdaMART(100, 7, min_documents_in_leaf=20, objective=objective).fit(data)


def simulated_users(train: Any, seed: int) -> tuple[Any, Any]:
    """Return a log of DBN users, who see the ten best documents by BM25 with noise, and the document of each row."""
    from podium.clicks import ClickLog

    rng = np.random.default_rng(seed)
    feature = np.asarray(train.features)[:, 24]  # BM25 of the whole document
    columns: dict[str, list[Any]] = {"impression": [], "row": [], "position": [], "clicked": []}
    for k in range(train.n_queries):
        rows = train.order[train.offsets[k] : train.offsets[k + 1]]
        for user in range(USERS):
            shown = rows[np.argsort(-(feature[rows] + rng.normal(0, 0.2, len(rows))))[:10]]
            grade = train.relevance[shown].astype(int)
            columns["clicked"] += dbn_clicks(ATTRACTS[grade][None], SATISFIES[grade][None], rng)[0].tolist()
            columns["impression"] += [k * USERS + user] * len(shown)
            columns["row"] += shown.tolist()
            columns["position"] += range(1, len(shown) + 1)
    rows = np.array(columns["row"])
    log = ClickLog.from_arrays(
        impression=[f"{k:08}" for k in columns["impression"]], query=train.qid[rows].astype(str),
        document=rows.astype(str), position=columns["position"], clicked=columns["clicked"],
    )  # fmt: skip
    return log, np.array(log.documents)[log.document].astype(np.int64)


def dbn_clicks(attraction: Any, satisfaction: Any, rng: Any) -> Any:
    """Return the clicks of DBN users on rankings, one ranking per row."""
    clicked, examines = np.zeros(attraction.shape, np.bool_), np.ones(len(attraction), np.bool_)
    for place in range(attraction.shape[1]):
        clicked[:, place] = examines & (rng.random(len(attraction)) < attraction[:, place])
        stops = clicked[:, place] & (rng.random(len(attraction)) < satisfaction[:, place])
        examines &= ~stops & (rng.random(len(attraction)) < CONTINUES)
    return clicked


def simulated_log(n_impressions: int) -> Any:
    """Return impressions of ten of the fifteen documents of a query, ranked with noise, and the clicks of DBN users."""
    from podium.clicks import ClickLog

    rng = np.random.default_rng(0)
    n_queries, n_documents, depth = max(10, n_impressions // 50), 15, 10
    attraction, satisfaction = rng.beta(1, 3, (n_queries, n_documents)), rng.beta(2, 2, (n_queries, n_documents))
    query = np.minimum(rng.zipf(1.3, n_impressions) - 1, n_queries - 1)
    noise = rng.normal(0, 0.2, (n_impressions, n_documents))
    shown = np.argsort(-(attraction[query] + noise), axis=1)[:, :depth]
    places = query[:, None], shown
    return ClickLog.from_arrays(
        impression=np.repeat(np.arange(n_impressions), depth), query=np.repeat(query, depth), document=shown.ravel(),
        position=np.tile(np.arange(1, depth + 1), n_impressions),
        clicked=dbn_clicks(attraction[places], satisfaction[places], rng).ravel(),
    )  # fmt: skip


def speed() -> dict[str, dict[str, Any]]:
    """Return seconds for a million sessions, and µs for a session and EM step, also of PyClick."""
    few, log = simulated_log(TIMED_IN_PYTHON), simulated_log(SESSIONS)
    theirs, table = pyclick_models(), {}
    for name, model in models().items():
        model.fit(few)  # kernels
        started = time.perf_counter()
        model.fit(log)
        ours = time.perf_counter() - started
        steps = max(1, model.fitted_.n_steps)
        table[name] = {
            "1,000,000 sessions, s": f"{ours:.2f}", "EM steps": model.fitted_.n_steps,
            "µs a session and step": f"{ours / steps / SESSIONS * 1e6:.3f}",
        }  # fmt: skip
        if name in theirs:
            sessions = pyclick_sessions(few)
            started = time.perf_counter()
            theirs[name].train(sessions)
            seconds = (time.perf_counter() - started) / getattr(theirs[name]._inference, "iter_num", 1)
            table[name]["PyClick"] = f"{seconds / TIMED_IN_PYTHON * 1e6:.0f}"
            table[name]["times PyClick"] = f"{seconds / TIMED_IN_PYTHON / (ours / steps / SESSIONS):,.0f}"
    return table


def pyclick_models() -> dict[str, Any]:
    """Return PyClick's models, with two EM steps; none if PyClick is not installed."""
    kinds = {
        "Cascade": "CM", "DBN": "DBN", "DependentClicks": "DCM", "PositionBased": "PBM", "DBN, simplified": "SDBN",
        "UserBrowsing": "UBM",
    }  # fmt: skip
    try:
        found = {name: getattr(import_module(f"pyclick.click_models.{k}"), k)() for name, k in kinds.items()}
    except ImportError:
        return {}
    for model in found.values():
        if hasattr(model._inference, "iter_num"):
            model._inference.iter_num = 2
    return found


def pyclick_sessions(log: Any) -> list[Any]:
    """Return a log in PyClick's format."""
    from pyclick.search_session.SearchResult import SearchResult
    from pyclick.search_session.SearchSession import SearchSession

    sessions = []
    for k in range(log.n_impressions):
        session = SearchSession(log.queries[log.query[k]])
        rows = range(log.starts[k], log.starts[k + 1])
        session.web_results = [SearchResult(log.documents[log.document[r]], int(log.clicked[r])) for r in rows]
        sessions.append(session)
    return sessions


PARTS = {
    "prediction": prediction,
    "agreement": agreement,
    "session_rankers": session_rankers,
    "rankers": rankers,
    "speed": speed,
}
NAMES = (
    "click rate of the position", "click rate of the document at the position", "past click rate",
    "click rate of the document", "last-click rate", "COEC", "dwell grade", "preferred to skipped", "as shown",
    "Cascade", "DependentClicks", "DBN, simplified", "PositionBased", "PositionBased, intervention", "UserBrowsing",
    "DBN", "clicks as they are", "clicks, debiased", "grades",
)  # fmt: skip


def run() -> Report:
    """Run all parts, each in a separate process."""
    parts = [in_child("bench.click_models", part) for part in PARTS]
    rows = [{"model": name} | {k: v for part in parts for k, v in part.get(name, {}).items()} for name in NAMES]
    return Report(
        "click_models", "Click models", rows,
        [
            "Perplexity (lower is better) and log-likelihood per session: models are fitted to 10,000 sessions of a "
            "search engine and judged on 10,000 others. The log has no document ids, so all results with the same "
            "snippet type and grade count as one document. Grades 0 to 4: the attractiveness of web results by grade.",
            "Agreement with human grades: a document is known by its query, snippet type and position, over all "
            "20,000 sessions (1.8 per query). τ is Kendall's τ-b of labels and grades of judged results, averaged "
            "over sessions and over positions; NDCG@10 is that of the order by labels.",
            "Rankers of real sessions (LambdaMART, 100 trees) use the snippet type and the past clicks on the query's "
            "result at the same position, without or with the position itself. They train on the sessions of one half "
            "of the queries and are tested on the grades of the other half, and vice versa.",
            f"Rankers of MQ2008 train on clicks of simulated DBN users, {USERS} per query, who see the ten best "
            "documents by BM25 with noise. NDCG@10 is by grades, the mean of five folds.",
            "Seconds are those of a fit to simulated sessions of ten results. µs are also given for PyClick, from "
            f"{TIMED_IN_PYTHON} sessions and two steps{'' if pyclick_models() else '; it was not installed'}.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(PARTS[sys.argv[1]]()))
