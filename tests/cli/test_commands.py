"""The commands, as a shell runs them."""

import gzip
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import podium
from podium.estimators import AdaRank, RankBoost
from podium.estimators.parameters import MODELS
from tests.commands import PODIUM, run

pytestmark = pytest.mark.slow  # every call starts a process


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "data.txt.gz"
    done = run("generate", path, "--queries", 20, "--documents", "5-9", "--features", 4)
    assert done.returncode == 0, done.stderr
    return path


def test_generate_gives_the_same_data_as_the_library(sample, tmp_path):
    expected = podium.artificial(20, documents=(5, 9), features=4)
    assert np.array_equal(podium.read(sample).features, expected.features)
    web = run("generate", tmp_path / "w.parquet", "--web", "--queries", 2, "--documents", 30)
    assert web.returncode == 0, web.stderr
    assert podium.read(tmp_path / "w.parquet").features.shape == (60, 136)
    clicks = run("generate", tmp_path / "c.parquet", "--queries", 2, "--clicks", "--part", "test")
    assert clicks.returncode == 0, clicks.stderr
    assert set(podium.read(tmp_path / "c.parquet").labels) == {"relevance", "clicks", "similar_clicks"}


def test_describe_prints_text_or_json(sample):
    words = run("describe", sample)
    assert words.returncode == 0
    assert words.stdout.startswith("documents  ")
    assert "\x1b" not in words.stdout
    assert words.stderr == ""
    assert json.loads(run("describe", "--json", sample).stdout)["queries"] == 20


def test_describe_reads_standard_input(sample):
    text = gzip.decompress(sample.read_bytes()).decode()
    assert "queries    20" in run("describe", "-", "--format", "letor", text=text).stdout


def test_convert_to_parquet_and_back(sample, tmp_path):
    for source, target in ((sample, "a.parquet"), (tmp_path / "a.parquet", "b.txt")):
        done = run("convert", source, tmp_path / target)
        assert done.returncode == 0, done.stderr
    assert np.array_equal(podium.read(tmp_path / "b.txt").features, podium.read(sample).features)
    scaled = run("convert", sample, tmp_path / "c.txt", "--normalize", "minmax")
    assert scaled.returncode == 0
    assert podium.read(tmp_path / "c.txt").features.max() == 1
    names = tmp_path / "names.txt"
    names.write_text("".join(f"field {k}\n" for k in range(podium.read(sample).n_features)))
    assert run("convert", sample, tmp_path / "d.parquet", "--feature-names", names).returncode == 0
    assert podium.read(tmp_path / "d.parquet").feature_names[:2] == ("field 0", "field 1")
    names.write_text("one\n")
    assert "feature_names" in run("convert", sample, tmp_path / "e.parquet", "--feature-names", names).stderr


def test_exports_are_checked_and_differences_are_reported(sample, tmp_path):
    model = tmp_path / "m.podium"
    podium.LambdaMART(n_trees=3).fit(podium.read(sample)).model_.save(model)
    done = run("export", model, tmp_path / "m.json", "--format", "elasticsearch", "--check", sample)
    assert done.returncode == 0, done.stderr
    assert "scored by the rules of elasticsearch: scores differ by at most 0, no ranking changes" in done.stdout
    assert "differ by at most 0 (at thresholds), 0 (infinite), 0 (missing)" in done.stdout
    done = run("export", model, tmp_path / "m.json", "--format", "catboost")
    assert done.returncode == 0, done.stderr
    assert "podium: warning: CatBoost treats" in done.stderr


def test_columns_are_named_on_the_command_line(tmp_path):
    (tmp_path / "s.csv").write_text("session,grade,clicked,kind,x\n1,-1,1,WEB,2\n1,3,0,WEB,4\n")
    options = ("--qid", "session", "--label", "grade", "--labels", "clicks=clicked", "--features", "x")
    done = run("convert", tmp_path / "s.csv", tmp_path / "s.parquet", *options, "--unlabelled", -1)
    assert done.returncode == 0, done.stderr
    data = podium.read(tmp_path / "s.parquet")
    assert data.labels["clicks"].tolist() == [1, 0]
    assert np.isnan(data.relevance[0])


def test_errors_are_one_line_without_a_traceback(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("0 qid:1 1:1\n0 qid:1 1:x\n")
    failed = run("describe", bad)
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr == (f"podium: error: {bad}, line 2, column 11: expected a number, but found 'x'\n")
    debug = run("--debug", "describe", bad)
    assert debug.returncode == 1
    assert "Traceback" in debug.stderr


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["describe"], ["generate", "a.txt", "--documents", "x"],
     ["generate", "a.txt", "--queries", "x"], ["convert", "a.csv", "b.txt", "--labels", "x"]],
)  # fmt: skip
def test_wrong_usage_has_its_own_exit_code(arguments, tmp_path):
    failed = run(*arguments, cwd=tmp_path)
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr
    assert not list(tmp_path.iterdir())


def test_warnings_go_to_standard_error(tmp_path):
    (tmp_path / "a.txt").write_text("0 qid:1 1:1\n0 qid:2 1:2\n1 qid:1 1:3\n")
    done = run("describe", tmp_path / "a.txt")
    assert done.returncode == 0
    assert done.stderr.startswith("podium: warning: ")
    assert "line 3: query '1' returns" in done.stderr


def test_a_closed_pipe_is_quiet(sample):
    shell = f"{PODIUM} describe {sample} | true"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_help_and_version():
    assert podium.__version__ in run("--version").stdout
    for command in ("generate", "describe", "convert"):
        assert "Usage: podium" in run(command, "--help").stdout
    assert "generate" in run("--help").stdout
    code = "import podium.cli, sys; print([m for m in ('numba', 'numpy') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_the_list_of_commands_repeats_the_first_sentence_of_their_help():
    from podium.cli.app import COMMANDS, load_command

    for name, summary in COMMANDS.items():
        assert " ".join((load_command(name).help or "").split()).startswith(summary)


# --- evaluation


@pytest.fixture(scope="module")
def scored(sample, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    data = podium.read(sample)
    np.savetxt(folder / "a.txt", data.feature(0))
    named = data.replace(document_ids=[f"d{k}" for k in range(len(data))])
    podium.write_run(named, data.feature(1), folder / "b.run", "b")
    podium.write_qrels(named, folder / "qrels")
    return folder


def test_evaluate_equals_the_library(sample, scored):
    data = podium.read(sample)
    done = run("evaluate", sample, scored / "a.txt", "-m", "ndcg@5", "--measure", "ap", "--as", "json")
    assert done.returncode == 0, done.stderr
    expected = podium.evaluate(data, np.loadtxt(scored / "a.txt"), ["ndcg@5", "ap"])
    assert {row["measure"]: row["mean"] for row in json.loads(done.stdout)} == expected.means
    by_feature = run("evaluate", sample, "feature:1", "-m", "ndcg@5", "-m", "ap", "--as", "json")
    assert by_feature.stdout == done.stdout
    per_query = run("evaluate", sample, "feature:1", "--per-query", "--as", "csv").stdout.splitlines()
    assert per_query[0] == "qid,ndcg@10"
    assert len(per_query) == data.n_queries + 1


def test_evaluate_with_a_preset_and_with_trec_files(sample, scored):
    letor = run("evaluate", sample, "feature:2", "--preset", "letor3")
    assert "ndcg(ties=stable,discount=letor)@10" in letor.stdout
    trec = run("evaluate", scored / "qrels", scored / "b.run", "--qrels", "-m", "ap", "--as", "json")
    plain = run("evaluate", sample, "feature:2", "-m", "ap", "--as", "json")
    assert json.loads(trec.stdout)[0]["mean"] == pytest.approx(json.loads(plain.stdout)[0]["mean"])


@pytest.mark.parametrize("shape", ["text", "markdown", "latex", "csv", "json"])
def test_compare_in_every_output_format(shape, sample, scored):
    done = run("compare", sample, f"a={scored / 'a.txt'}", "b=feature:2", "--margin", 0.1, "--moved", 2, "--as", shape)
    assert done.returncode == 0, done.stderr
    assert "equivalent" in done.stdout
    if shape == "json":
        assert set(json.loads(done.stdout)) == {"means", "pairs", "moved"}
    assert "\x1b" not in done.stdout


def test_evaluation_errors_name_what_is_wrong(sample, scored, tmp_path):
    (tmp_path / "bad.txt").write_text("1\nx\n")
    cases = {
        ("evaluate", sample, tmp_path / "bad.txt"): "line 2: expected a score (or a TREC run), but found 'x'",
        ("evaluate", sample, tmp_path / "none.txt"): "cannot be opened",
        ("evaluate", sample, "feature:9"): "they are numbered 1 to 4",
        ("evaluate", sample, "feature:x"): "numbered 1 to 4",
        ("evaluate", scored / "qrels", "feature:1", "--qrels"): "have no features",
        ("evaluate", sample, "feature:1", "-m", "nope"): "there is no measure 'nope'",
        ("compare", sample, "a=feature:1"): "at least two systems",
    }
    for arguments, words in cases.items():
        failed = run(*arguments)
        assert failed.returncode == 1
        assert failed.stderr.startswith("podium: error: ")
        assert words in failed.stderr
    assert run("compare", sample, "a").returncode == 2
    assert "Traceback" in run("evaluate", sample, "feature:9", "--debug").stderr
    (tmp_path / "z.txt").write_text("1 qid:1 0:5 1:1\n0 qid:1 0:1 1:9\n")
    zero = run("evaluate", tmp_path / "z.txt", "feature:1", "--first-index", 0, "-m", "rr", "--as", "json")
    assert json.loads(zero.stdout)[0]["mean"] == 0.5


# --- models


def test_train_score_and_inspect(sample, tmp_path):
    (tmp_path / "c.toml").write_text('n_leaves = 4\nmeasure = "err"\nmin_documents_in_leaf = 2\n')
    options = (
        "--valid",
        sample,
        "--config",
        tmp_path / "c.toml",
        "--n-trees",
        6,
        "--measure",
        "ap",
        "-o",
        tmp_path / "run",
    )
    done = run("train", "lambdamart", sample, *options, "--checkpoint-every", 2)
    assert done.returncode == 0, done.stderr
    assert "6 of 6 trees, valid/ap" in done.stderr
    assert {p.name for p in (tmp_path / "run").iterdir()} == {
        "model.podium", "history.json", "config.toml", "run.json",
    }  # fmt: skip
    data = podium.read(sample)
    expected = podium.LambdaMART(n_trees=6, n_leaves=4, measure="ap", min_documents_in_leaf=2).fit(data, valid=data)
    model = tmp_path / "run" / "model.podium"
    assert podium.load(model).digest() == expected.digest()
    assert len(json.loads((tmp_path / "run" / "history.json").read_text())["valid/ap"]) == 6
    again = run(
        "train",
        "lambdamart",
        sample,
        "--config",
        tmp_path / "run" / "config.toml",
        "-o",
        tmp_path / "again",
        "--valid",
        sample,
    )
    assert again.returncode == 0, again.stderr
    assert podium.load(tmp_path / "again" / "model.podium").digest() == expected.digest()

    scaled = run("train", "lambdamart", sample, "--n-trees", 3, "--normalize", "zscore", "-o", tmp_path / "scaled")
    assert scaled.returncode == 0, scaled.stderr
    same = run("train", "--config", tmp_path / "scaled" / "config.toml", "-o", tmp_path / "same")
    assert same.returncode == 0, same.stderr
    digests = {podium.load(tmp_path / name / "model.podium").digest() for name in ("scaled", "same")}
    assert len(digests) == 1

    scores = run("score", model, sample)
    assert np.array_equal([float(line) for line in scores.stdout.split()], expected.predict(data))
    assert run("score", model, sample, "--trec", "mine", "-o", tmp_path / "run.trec").returncode == 0
    assert podium.read_run(tmp_path / "run.trec").name == "mine"
    text = gzip.decompress(sample.read_bytes()).decode().splitlines()
    (tmp_path / "short.txt").write_text("".join(" ".join(line.split()[:4]) + "\n" for line in text))
    short = run("score", model, tmp_path / "short.txt")
    assert short.returncode == 1
    assert "the data lacks the feature '3' of the model" in short.stderr
    assert "most important features" in run("inspect", model).stdout
    assert json.loads(run("inspect", model, "--json").stdout)["digest"] == expected.digest()
    assert run("inspect", model, "--trees").stdout.startswith("tree 0")


def test_training_errors_name_what_is_wrong(sample, tmp_path):
    (tmp_path / "bad.toml").write_text("n_leaves = ")
    (tmp_path / "odd.toml").write_text("colour = 3")
    (tmp_path / "read.toml").write_text("[reading]\ncolour = 3")
    cases = {
        ("train", "lambdamart", sample, "--config", tmp_path / "bad.toml"): "is not a TOML file",
        ("train", "lambdamart", sample, "--config", tmp_path / "odd.toml"): "has no parameter 'colour'",
        ("train", "lambdamart", sample, "--config", tmp_path / "read.toml"): "[reading] has no option 'colour'",
        ("train", "lambdamart", sample, "--patience", 3): "patience needs validation data",
        ("score", sample, sample): "is not a Podium model",
        ("train", "lambdamart", sample, "--checkpoint-every", 0): "every must be a whole number",
        ("inspect", tmp_path / "none"): "cannot be opened",
    }
    for arguments, words in cases.items():
        failed = run(*arguments, cwd=tmp_path)
        assert failed.returncode == 1, arguments
        assert words in failed.stderr
        assert "Traceback" not in failed.stderr
    assert run("train").returncode == 2


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("lambdamart", ["--objective", "anneal(lambda(ndcg), local(ndcg@3))", "--step", "gradient"],
         lambda: podium.LambdaMART(3, objective="anneal(lambda(ndcg), local(ndcg@3))", step="gradient")),
        ("ranknet-trees", ["--sigma", 2], lambda: podium.RankNetTrees(3, sigma=2.0)),
        ("mart", [], lambda: podium.MART(3)),
        ("mcrank", ["--expects", "gain"], lambda: podium.McRank(3, expects="gain")),
        ("ordinal-mart", [], lambda: podium.OrdinalMART(3)),
        ("linear", [], lambda: podium.LinearRanker(n_iterations=3)),
        ("linear", ["--objective", "pairwise(squared_hinge)", "--l2", 0.1],
         lambda: podium.LinearRanker(n_iterations=3, objective="pairwise(squared_hinge)", l2=0.1)),
        ("adarank", ["--repeats"], lambda: AdaRank(n_iterations=3, repeats=True)),
        ("rankboost", [], lambda: RankBoost(3)),
        ("prank", ["--no-averaged"], lambda: podium.PRank(epochs=3, averaged=False)),
        ("additive-groves", ["--n-trees-in-grove", 2, "--alpha", 0.2, "--training", "slow"],
         lambda: podium.AdditiveGroves(3, 2, 0.2, training="slow")),
    ],
)  # fmt: skip
def test_every_model_trains_and_its_config_repeats_the_run(sample, tmp_path, model, options, expected):
    sizes = {
        "linear": "--n-iterations",
        "adarank": "--n-iterations",
        "prank": "--epochs",
        "additive-groves": "--n-groves",
    }
    size = sizes.get(model, "--n-trees")
    done = run("train", model, sample, size, 3, *options, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    again = run("train", "--config", tmp_path / "run" / "config.toml", "-o", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    fitted = expected().fit(podium.read(sample))
    for name in ("run", "again"):
        assert podium.load(tmp_path / name / "model.podium").digest() == fitted.digest()
    file = tmp_path / "run" / "model.podium"
    scores = run("score", file, sample)
    assert np.array_equal([float(line) for line in scores.stdout.split()], fitted.predict(podium.read(sample)))
    assert json.loads(run("inspect", file, "--json").stdout)["digest"] == fitted.digest()
    if model == "linear":
        assert "--n-trees needs a model of trees" in run("score", file, sample, "--n-trees", 2).stderr
        assert "has no trees" in run("inspect", file, "--trees").stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "forest"], "there is no model 'forest'; choose from ranker, lambdamart, ranknet-trees"),
        (["--model", "linear"], "there is no option --model: write podium train linear DATA…"),
        (["--model=mcrank"], "there is no option --model: write podium train mcrank DATA…"),
        (["lambdamart", "--objective", "lambda(ndgc)"], "ndgc"),
        (["lambdamart", "--objective", "lamda(ndcg)"], "there is no 'lamda' (did you mean 'lambda'?)"),
        (["lambdamart", "--objective", "local()"], "use the step 'gradient'"),
    ],
)
def test_invalid_models_and_objectives(sample, tmp_path, options, words):
    done = run("train", *options, sample, "-o", tmp_path / "run")
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["linear", "--n-leaves", 3],
            "linear has no option --n-leaves; these models have it: ranker, lambdamart, ranknet-trees",
        ),
        (["lambdamart", "--hidden", 3], "lambdamart has no option --hidden; these models have it: ranknet, lambdarank"),
        (["--hidden", 3], "ranker has no option --hidden"),
        (["linear", "--checkpoint-every", 2], "No such option: --checkpoint-every"),
        (["mcrank", "--num-leaves", 2], "(Possible options: --n-leaves)"),
        (["lambda-mart"], "'lambda-mart' is neither a model nor a file (did you mean 'lambdamart'?)"),
    ],
)
def test_options_that_a_model_does_not_have(sample, arguments, words):
    done = run("train", *arguments, sample)
    assert done.returncode != 0
    assert words in " ".join(re.sub("[│╭╮╰╯─]", "", done.stderr).split())


def test_each_model_has_separate_help():
    shown = run("train", "--help").stdout
    for name in MODELS:
        assert f" {name} " in shown
    helps = {
        name: run("train", name, "--help", env={**os.environ, "COLUMNS": "200"}).stdout
        for name in ("mart", "lambdarank")
    }
    assert "--n-leaves" in helps["mart"]
    assert "--hidden" not in helps["mart"]
    assert "--hidden" in helps["lambdarank"]
    assert "--n-leaves" not in helps["lambdarank"]


@pytest.mark.parametrize("words", [[], ["train"], ["train", "lambdarank"], ["train", "lambdamart"], ["adapt"]])
def test_help_loads_neither_numpy_nor_the_engine(words):
    code = f"""
import sys
sys.argv = ["podium", *{words!r}, "--help"]
from podium.cli import main
try:
    main()
except SystemExit:
    print([name for name in ("numpy", "numba", "sklearn", "torch", "scipy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_model_on_the_command_line_overrides_the_config(sample, tmp_path):
    (tmp_path / "c.toml").write_text('model = "mcrank"\nn_trees = 2\n')
    for words, kind in ((["mart"], "2 trees"), ([], "ClassEnsemble(2 trees")):
        done = run("train", *words, sample, "--config", tmp_path / "c.toml", "-o", tmp_path / f"run{len(words)}")
        assert done.returncode == 0, done.stderr
        assert kind in done.stdout


def test_evaluate_by_groups_of_queries(tmp_path):
    (tmp_path / "a.csv").write_text("qid,label,x,device\n1,1,2,0\n1,0,1,0\n2,0,2,1\n2,1,1,1\n")
    done = run("evaluate", tmp_path / "a.csv", "feature:x", "-m", "rr", "--by", "device", "--as", "json")
    assert done.returncode == 0, done.stderr
    assert [(row["group"], row["mean"]) for row in json.loads(done.stdout)] == [("0", 1.0), ("1", 0.5), ("all", 0.75)]
    done = run("evaluate", tmp_path / "a.csv", "feature:x", "--by", "x")
    assert done.returncode == 1
    assert "by='x' must be constant within a query" in done.stderr


def test_combine_adapt_and_committee(sample, tmp_path):
    for name, options in (("a", [sample, "--n-trees", 3]), ("b", ["linear", sample, "--n-iterations", 3])):
        assert run("train", *options, "-o", tmp_path / name).returncode == 0
    a, b = (tmp_path / name / "model.podium" for name in "ab")
    done = run("combine", a, b, sample, "-o", tmp_path / "both.podium", "-m", "err")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("α = ")
    data = podium.read(sample)
    expected = podium.combine(podium.load(a), podium.load(b), data, "err")
    assert podium.load(tmp_path / "both.podium").digest() == expected.model.digest()
    done = run("adapt", a, sample, "--other", b, "--n-trees", 3, "-o", tmp_path / "adapted.podium")
    assert done.returncode == 0, done.stderr
    assert "interpolated" in done.stdout
    assert str(b) in done.stdout
    done = run("committee", sample, "--time-budget", 0.001, "-o", tmp_path / "committee.podium")
    assert done.returncode == 0, done.stderr
    assert "trees of 5 members" in done.stdout
    assert "Average(QueryRegression()" in done.stdout  # the table of objectives that were tried
    done = run(
        "train", "lambdamart", sample, "--submodel", a, "--step", "line-search", "--n-trees", 2, "-o", tmp_path / "more"
    )
    assert done.returncode == 0, done.stderr
    again = run("train", "--config", tmp_path / "more" / "config.toml", "-o", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    digests = {podium.load(tmp_path / name / "model.podium").digest() for name in ("more", "again")}
    assert len(digests) == 1
    assert (
        "cannot be opened"
        in run("train", "lambdamart", sample, "--submodel", tmp_path / "none", "-o", tmp_path / "x").stderr
    )


def test_nets_are_trained_resumed_and_adapted(sample, tmp_path):
    settings = ["--hidden", 4, "--epochs", 4, "--batch-queries", 5, "--checkpoint-every", 2]
    done = run("train", "lambdarank", sample, *settings, "-o", tmp_path / "net")
    assert done.returncode == 0, done.stderr
    assert "Net(Layers" in done.stdout
    assert "4 of 4 epochs" in done.stderr
    again = run("train", "--config", tmp_path / "net" / "config.toml", "-o", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    models = [tmp_path / name / "model.podium" for name in ("net", "again")]
    assert len({podium.load(model).digest() for model in models}) == 1
    scored = run("score", models[0], sample)
    assert scored.returncode == 0, scored.stderr
    assert len(scored.stdout.splitlines()) == len(podium.read(sample))
    assert "Net(Layers" in run("inspect", models[0]).stdout
    assert "has no trees" in run("inspect", models[0], "--trees").stderr
    adapted = run("adapt", models[0], sample, "--n-trees", 2, "-o", tmp_path / "adapted.podium")
    assert adapted.returncode == 0, adapted.stderr


def test_info_shows_what_a_bug_report_needs():
    facts = json.loads(run("info", "--json").stdout)
    assert facts["podium"] == podium.__version__
    assert {"numpy", "numba", "llvmlite", "scipy", "pyarrow", "pandas"} <= set(facts["packages"])
    assert facts["memory"].endswith("GiB")
    assert facts["extras"]["parquet"] == []
    assert "AVX-512" in facts["processor"]
    words = run("info").stdout
    assert f"podium        {podium.__version__}" in words
    assert "parquet (installed)" in words
    module = subprocess.run([sys.executable, "-m", "podium", "--version"], capture_output=True, text=True, check=False)
    assert module.stdout == f"podium {podium.__version__}\n"
    assert "_podium_completion" in run("--show-completion", "bash").stdout


def test_ranker_is_trained_unless_a_model_is_named(sample, tmp_path):
    done = run("train", sample, "--n-trees", 3, "--n-folds", 2, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    expected = podium.Ranker(n_trees=3, n_folds=2).fit(podium.read(sample))
    assert podium.load(tmp_path / "run" / "model.podium").digest() == expected.digest()
