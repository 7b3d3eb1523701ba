"""Estimators of `pyspark.ml` on a local Spark, and tasks that are killed, hang or cannot start.

`test_engines.py` compares the models of all estimators with local training.
"""

import random
import signal
import socket
import threading
import time

import numpy as np
import pytest

import podium
from podium.boosting import Checkpoint
from podium.errors import DataError, ParameterError, PodiumError, PodiumWarning
from podium.objectives import Debiased, Lambda
from tests.distributed.clusters import require_same, strike

pd = pytest.importorskip("pandas")
pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from podium.distributed import (  # noqa: E402
    SparkEngine,
    SparkLambdaMART,
    SparkMARTClassifier,
    SparkRanker,
    SparkRankingEvaluator,
    SparkRankingModel,
    fit,
    spark_engine,
    spark_folds,
    spark_tasks,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("time_limit")]
FEATURES = [f"f{k}" for k in range(6)]
SETTINGS = {"n_trees": 3, "n_leaves": 6}


def frame_of(data):
    columns = {name: data.features[:, k].astype(float) for k, name in enumerate(FEATURES)}
    columns |= {"grade": data.relevance, "query": data.qid, "shown at": data.positions}
    return pd.DataFrame(columns | {"w.doc": data.document_weights, "w.query": data.query_weight_of_row})


@pytest.fixture(scope="module")
def pandas_frame(train, valid):
    """Training and validation rows in any order, with weights, missing values and positions."""
    valid = frame_of(valid).assign(held_out=True)
    valid["query"] += 10**7
    rows = pd.concat([frame_of(train).assign(held_out=False), valid])
    return rows.sample(frac=1.0, random_state=0, ignore_index=True)


@pytest.fixture(scope="module")
def frame(spark, pandas_frame):
    frame = spark.createDataFrame(pandas_frame).repartition(3)
    frame = frame.selectExpr("*", "IF(isnan(f1), NULL, f1) AS g").drop("f1").withColumnRenamed("g", "f1").cache()
    yield frame
    frame.unpersist()


ROLES = {"labelCol": "grade", "groupCol": "query"}
ALL_ROLES = {**ROLES, "weightCol": "w.doc", "queryWeightCol": "w.query", "positionCol": "shown at"}


def data_of(pandas_frame, names=tuple(FEATURES)):
    features = pandas_frame[FEATURES].to_numpy()
    return podium.RankingData(
        features, pandas_frame["grade"], qid=pandas_frame["query"], feature_names=names,
        document_weights=pandas_frame["w.doc"], query_weights=pandas_frame["w.query"].to_numpy(),
        positions=pandas_frame["shown at"],
    )  # fmt: skip


def plain(data):
    return podium.RankingData(data.features, data.relevance, qid=data.qid, feature_names=data.feature_names)


def local_fit(estimator, pandas_frame, names=tuple(FEATURES), keep=lambda data: data):
    held_out = pandas_frame["held_out"]
    train, valid = (keep(data_of(pandas_frame[of].reset_index(drop=True), names)) for of in (~held_out, held_out))
    return estimator.fit(train, valid=valid)


def test_columns_with_weights_missing_values_and_early_stopping(frame, pandas_frame):
    settings = {
        "n_trees": 20, "n_leaves": 6, "patience": 2, "learning_rate": 0.5, "objective": Debiased(Lambda("ndcg")),
    }  # fmt: skip
    estimator = SparkLambdaMART(featuresCol=FEATURES, validationIndicatorCol="held_out", **ALL_ROLES, **settings)
    model = estimator.fit(frame)
    local = local_fit(podium.LambdaMART(**settings), pandas_frame)
    require_same(model.ranker, local)
    assert repr(model.ranker) == repr(local)
    assert local.n_trees_ < 20
    assert np.array_equal(model.ranker.position_bias_, local.position_bias_)
    scores = model.transform(frame).toPandas()
    assert np.array_equal(scores["prediction"], local.predict(scores[FEATURES]))


def test_vectors_pipelines_and_files(spark, frame, pandas_frame, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.feature import VectorAssembler

    assembler = VectorAssembler(inputCols=FEATURES, outputCol="features", handleInvalid="keep")
    objective = Lambda("ndcg@5")
    ranker = SparkLambdaMART(**SETTINGS, **ROLES, validationIndicatorCol="held_out").setParams(objective=objective)
    pipeline = Pipeline(stages=[assembler, ranker.setPredictionCol("score")])
    pipeline.write().save(str(tmp_path / "pipeline"))
    loaded = Pipeline.read().load(str(tmp_path / "pipeline"))
    assert loaded.getStages()[1].getOrDefault("objective") == objective
    assert loaded.getStages()[1].uid == ranker.uid
    model = loaded.fit(frame)
    local = local_fit(podium.LambdaMART(**SETTINGS, objective=objective), pandas_frame, keep=plain)
    require_same(model.stages[1].ranker, local)
    model.write().save(str(tmp_path / "model"))
    again = PipelineModel.read().load(str(tmp_path / "model"))
    assert isinstance(again.stages[1], SparkRankingModel)
    assert repr(again.stages[1].ranker) == repr(local)
    scores = again.transform(frame).toPandas()
    assert np.array_equal(scores["score"], local.predict(scores[FEATURES].to_numpy()))

    arrays = frame.selectExpr("array(f0, f1, f2, f3, f4, f5) AS features", "grade", "query")
    unnamed = SparkLambdaMART(**SETTINGS, **ROLES).fit(arrays).ranker
    same = fit(podium.LambdaMART(**SETTINGS), arrays, "grade", qid="query", eval_set=(arrays, "grade", "query"))
    assert unnamed.trees_.digest() == same.trees_.digest()
    lazy = same.predict(arrays).toPandas()
    assert np.array_equal(lazy["score"], unnamed.predict(np.stack(lazy["features"])))
    data = podium.RankingData(pandas_frame[FEATURES].to_numpy(), pandas_frame["grade"], qid=pandas_frame["query"])
    assert unnamed.digest() == podium.LambdaMART(**SETTINGS).fit(data).digest()


def test_cross_validation_by_query(frame):
    from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder

    folds = spark_folds(frame.where("not held_out"), 2, groupCol="query", seed=3).cache()
    per_query = folds.groupBy("query").agg({"fold": "min", "*": "count"}).toPandas()
    assert folds.select("query", "fold").distinct().count() == len(per_query)
    assert set(per_query["min(fold)"]) == {0, 1}
    estimator = SparkLambdaMART(featuresCol=FEATURES, **ROLES, **SETTINGS)
    evaluator = SparkRankingEvaluator(measure="err@5", **ROLES)
    grid = ParamGridBuilder().addGrid(estimator.n_trees, [1, 4]).build()
    search = CrossValidator(
        estimator=estimator, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, foldCol="fold"
    )
    best = search.fit(folds)
    assert isinstance(best, CrossValidatorModel)
    rows = folds.toPandas()
    sets = [
        podium.RankingData(part[FEATURES], part["grade"], qid=part["query"])
        for part in (rows[rows["fold"] == k].reset_index(drop=True) for k in (0, 1))
    ]
    for n_trees, mean in zip([1, 4], best.avgMetrics, strict=True):
        model = podium.LambdaMART(n_trees=n_trees, n_leaves=6)
        values = [podium.evaluate(sets[k], model.fit(sets[1 - k]), "err@5").means["err@5"] for k in (0, 1)]
        assert mean == pytest.approx(np.mean(values), rel=1e-12)
    folds.unpersist()


def test_query_weights_count_in_the_mean(spark, frame, pandas_frame):
    data = data_of(pandas_frame)
    scored = frame.selectExpr("*", "f0 AS prediction").fillna({"prediction": 0.0})
    evaluator = SparkRankingEvaluator(measure="ndcg@3", **ROLES, queryWeightCol="w.query")
    scores = np.nan_to_num(pandas_frame["f0"].to_numpy())
    assert evaluator.evaluate(scored) == podium.evaluate(data, scores, "ndcg@3").means["ndcg@3"]


def test_classes(frame, pandas_frame):
    two = frame.selectExpr("*", "IF(grade > 1, 7, 3) AS class")
    estimator = SparkMARTClassifier(featuresCol=FEATURES, labelCol="class", groupCol="query", n_trees=2, n_leaves=6)
    classes = estimator.fit(two).transform(two).select("prediction").distinct().toPandas()
    assert set(classes["prediction"]) <= {3.0, 7.0}


# --- losses


def threads():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("Thread")}


def require_nothing_left(session, before):
    """No jobs, threads or task processes remain."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (
        session.sparkContext.statusTracker().getActiveJobsIds() or threads() - before
    ):
        time.sleep(0.1)
    assert not session.sparkContext.statusTracker().getActiveJobsIds()
    assert not threads() - before


def test_killed_and_hung_tasks(spark, train, valid):
    names = ["label", "qid", "position", "document_weight", "query_weight"]
    rows = [frame_of(data).set_axis([*FEATURES, *names], axis=1) for data in (train, valid)]
    estimator, before, times = podium.OrdinalMART(3, n_leaves=6), threads(), []
    local = estimator.fit(podium.RankingData(rows[0]), valid=podium.RankingData(rows[1]))
    frames = [spark.createDataFrame(part) for part in rows]
    with SparkEngine(spark, n_workers=2, heartbeat=2.0) as engine:

        def lose(round_):
            times.append(time.monotonic())
            if round_.iteration < 2:
                strike(engine, (signal.SIGKILL, signal.SIGSTOP)[round_.iteration], 1)

        with (
            pytest.warns(PodiumWarning, match="task . has left"),
            pytest.warns(PodiumWarning, match="task . sent no heartbeat for 2"),
        ):
            model = fit(estimator, frames[0], valid=frames[1], observers=[lose], engine=engine)
    require_same(model, local)
    assert max(np.diff(times)) < 60
    require_nothing_left(spark, before)


def test_a_driver_that_gives_up_leaves_nothing_and_resumes(spark, train, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_engine, "MOST_STARTS", 1)
    checkpoint, before = Checkpoint(tmp_path / "run", every=1), threads()
    with SparkEngine(spark, n_workers=2) as engine:

        def lose(round_):
            if round_.iteration == 1:
                strike(engine, signal.SIGKILL)

        with (
            pytest.warns(PodiumWarning, match="has left"),
            pytest.raises(PodiumError, match=r"has lost tasks of training 1 times.*with a checkpoint"),
        ):
            fit(podium.LambdaMART(**SETTINGS), train, observers=[lose], engine=engine, checkpoint=checkpoint)
        require_nothing_left(spark, before)
        seen = []
        model = fit(
            podium.LambdaMART(**SETTINGS), train, observers=[lambda r: seen.append(r.iteration)], engine=engine,
            checkpoint=checkpoint,
        )  # fmt: skip
    assert seen[0] > 0
    assert model.digest() == podium.LambdaMART(**SETTINGS).fit(train).digest()


def test_too_few_executors_are_an_error_within_the_time_limit(spark, frame):
    before, started = threads(), time.monotonic()
    estimator = SparkLambdaMART(featuresCol=FEATURES, **ROLES, **SETTINGS, numWorkers=5, timeout=2.0)
    with pytest.raises(PodiumError, match="has not started 5 tasks at the same time within 2 seconds"):
        estimator.fit(frame)
    assert time.monotonic() - started < 40
    require_nothing_left(spark, before)


def test_rows_that_change_when_they_are_computed_again_are_refused(spark, frame):
    from pyspark.sql import functions

    chance = functions.udf(lambda value: random.random(), "double").asNondeterministic()
    documents = frame.select(chance("f0").alias("f0"), frame["grade"].alias("label"), frame["query"].alias("qid"))
    with SparkEngine(spark, n_workers=2) as engine:

        def lose(round_):
            strike(engine, signal.SIGKILL)
            engine._rows = engine._partitioned()  # Spark keeps what it has partitioned, unless an executor is lost

        with pytest.warns(PodiumWarning), pytest.raises(DataError, match="changed when Spark recomputed them"):
            fit(podium.LambdaMART(**SETTINGS), documents, observers=[lose], engine=engine)


def test_a_failing_frame_is_an_error(spark, frame):
    broken = frame.selectExpr("*", "raise_error('no such bucket') AS f9")
    with pytest.raises(PodiumError, match="no such bucket"):
        SparkLambdaMART(featuresCol=["f9"], **ROLES, **SETTINGS).fit(broken)


def test_connections_without_the_token_are_closed():
    answers = []

    def serve(listener):
        connection, _ = listener.accept()
        try:
            spark_tasks.authenticate(spark_tasks.Wire(connection), b"token", spark_tasks.DRIVER, spark_tasks.TASK)
            answers.append("welcome")
        except OSError as error:
            answers.append(str(error))

    for token, expected in ((b"token", "welcome"), (b"other", "the other side does not know the token")):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=serve, args=(listener,))
            thread.start()
            wire = spark_tasks.Wire(socket.create_connection(listener.getsockname()))
            if token == b"token":
                spark_tasks.authenticate(wire, token, spark_tasks.TASK, spark_tasks.DRIVER)
            else:
                with pytest.raises(ConnectionError):
                    spark_tasks.authenticate(wire, token, spark_tasks.TASK, spark_tasks.DRIVER)
            thread.join(10)
            wire.close()
        assert answers.pop() == expected


def test_bad_input_is_refused(spark, frame):
    with pytest.raises(ParameterError, match=r"SparkLambdaMART has no parameter 'num_leaves'.*n_leaves"):
        SparkLambdaMART(num_leaves=5)
    with pytest.raises(DataError, match="n_leaves must be a whole number from 2, but is 1"):
        SparkLambdaMART(n_leaves=1)
    with pytest.raises(DataError, match="featuresCol: the DataFrame has no column 'features', only f0, f2"):
        SparkLambdaMART(**ROLES).fit(frame)
    with pytest.raises(DataError, match="groupCol: the DataFrame has no column 'qid'"):
        SparkLambdaMART(featuresCol=FEATURES, labelCol="grade").fit(frame)
    with pytest.raises(DataError, match="patience needs validation data: set validationIndicatorCol"):
        SparkRanker(featuresCol=FEATURES, **ROLES).fit(frame)
    split = frame.selectExpr("*", "f0 > 0.5 AS half")
    with pytest.raises(DataError, match="has rows in the training data and in the validation data"):
        SparkLambdaMART(featuresCol=FEATURES, **ROLES, validationIndicatorCol="half").fit(split)
    uneven = frame.selectExpr("IF(f0 > 0.5, array(f0), array(f0, f1)) AS features", "grade", "query")
    with pytest.raises(DataError, match="'features' must have arrays of one length, but has 1 to 2"):
        SparkLambdaMART(**ROLES).fit(uneven)
    mixed = frame.selectExpr("array(f0, f1) AS a", "f2", "grade", "query")
    with pytest.raises(DataError, match="'a' is a vector among 2 columns"):
        SparkLambdaMART(**ROLES, featuresCol=["a", "f2"]).fit(mixed)
