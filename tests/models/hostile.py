"""Maliciously changed model files with valid checksums, and a seeded fuzzer that uses them.

`python tests/models/hostile.py FOLDER SEED CASES` changes models of version 0.1 CASES times, tries to load each changed
file, and uses those that load in every way. It prints the number that loaded, and ends at a crash or at an error other
than Podium's.
"""

import hashlib
import io
import json
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import podium
from podium.models import save

MODELS = Path(__file__).parent / "version_0_1"
ODD = [0, 1, -1, 2, 7, -2, 2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), 2**40, 255, 256]
JUNK = [
    None, True, False, 0, -1, 1, 2, 5, 6, 7, 1.5, 1e308, -1e308, 10**30, 10**400, float("nan"), float("inf"), "", "x",
    "\ud800", "\0", [], {}, [1], [[]], {"a": 1}, ["a"] * 6, ["a", "b", "c", "d", "e", "f"], "podium net",
    "podium linear", "podium combined", "podium classes", "podium ensemble", "podium started", "own", "layers",
    "list transformer", "quantile", "log", "none", 2**24, 2**31, 2**63, 2**64,
]  # fmt: skip


def unpacked(path):
    """Return the header and the other members of a file, as arrays or bytes."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(contents.pop("header.json"))
    return header, {
        name: np.load(io.BytesIO(content)) if name.endswith(".npy") else content for name, content in contents.items()
    }


def packed(array):
    if isinstance(array, bytes):
        return array
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=array.dtype == object)
    return buffer.getvalue()


def write(path, header, arrays, compression=zipfile.ZIP_DEFLATED):
    """Write a file with a header and arrays, with valid checksums."""
    contents = {name: packed(array) for name, array in arrays.items()}
    header = header | {"sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {"header.json": json.dumps(header).encode(), **contents}.items():
            archive.writestr(name, content)
    return path


def change_array(rng, array):
    """Return a changed copy of an array."""
    if isinstance(array, bytes):
        content = bytearray(array)
        for _ in range(rng.integers(1, 5)):
            content[rng.integers(0, min(len(content), rng.choice([16, 400, len(content)])))] = rng.integers(0, 256)
        return bytes(content)
    array = array.copy()
    kind = rng.integers(0, 10)
    if kind <= 5 and len(array):
        for _ in range(rng.integers(1, 4)):
            place = rng.integers(0, len(array))
            if array.dtype.kind == "f":
                array[place] = rng.choice([0, 1, -1, np.nan, np.inf, -np.inf, 3e38, 1e-45, array[place] * 2])
            elif array.dtype.kind == "b":
                array.view(np.uint8)[place] = rng.integers(0, 256)
            elif rng.random() < 0.5:
                array[place] = np.array(ODD[rng.integers(0, len(ODD))]).astype(array.dtype)
            else:
                array[place] = np.clip(array[place] + rng.integers(-3, 4), -(2**31), 2**31 - 1)
        return array
    if kind == 6:
        return array[: rng.integers(0, len(array) + 1)]
    if kind == 7:
        return np.concatenate([array, array[: rng.integers(0, len(array) + 1)]])
    if kind == 8:
        return rng.permutation(array)
    return array.astype(rng.choice([np.int64, np.float32, np.uint8, ">i4", np.float64])) if len(array) else array


def change_header(rng, value, depth=0):
    """Return a header with one entry changed, at any level."""
    if isinstance(value, dict) and value and (depth == 0 or rng.random() < 0.7):
        keys = [key for key in value if key not in ("sha256", "info")] if depth == 0 else list(value)
        key = keys[rng.integers(0, len(keys))]
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: change_header(rng, value[key], depth + 1)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = rng.integers(0, len(value))
        rest = [change_header(rng, value[place], depth + 1)] if rng.random() < 0.8 else []
        return value[:place] + rest + value[place + 1 :]
    return JUNK[rng.integers(0, len(JUNK))]


def change_zip(rng, content):
    """Change bytes in the structure of a zip: in its directory at the end, or in the header of a member."""
    content = bytearray(content)
    directory = content.find(b"PK\x01\x02")
    places = [k for k in range(len(content) - 4) if content[k : k + 2] == b"PK"]
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.5:
            place = int(rng.choice(places)) + int(rng.integers(4, 46))
        else:
            place = int(rng.integers(directory, len(content)))
        values = [0, 1, 8, 12, 14, 99, 127, 255, int(rng.integers(0, 256))]
        content[min(place, len(content) - 1)] = values[rng.integers(0, len(values))]
    return bytes(content)


def make_case(rng, source, target):
    """Write a changed copy of a model file."""
    kind = rng.integers(0, 10)
    if kind == 0:
        target.write_bytes(change_zip(rng, source.read_bytes()))
        return
    header, arrays = unpacked(source)
    names = list(arrays)
    if kind >= 8 and "n_features" in header:  # version 0.1 had none
        header["encoding"] = {"categories": {"2": ["a", "b", "c"]}, "shifts": {"0": 1.5}}
    for _ in range(rng.integers(1, 3)):
        if kind <= 6:
            name = names[rng.integers(0, len(names))]
            arrays[name] = change_array(rng, arrays[name])
        else:
            header = change_header(rng, header)
    write(target, header, arrays)


@contextmanager
def unless_refused():
    """Ignore errors of models that need category names, or the scores that they continue from."""
    try:
        yield
    except podium.DataError as error:
        if "is categorical" not in str(error) and "continues from the scores" not in str(error):
            raise


def use(model, again):
    """Use a model in every way."""
    rng = np.random.default_rng(0)
    if model.n_features > 1000:
        return
    features = rng.choice(np.array([0, 1, -1, 3, 1e30, np.nan, np.inf], np.float32), (9, model.n_features))
    data = podium.RankingData(features, qid=[1, 1, 1, 1, 2, 2, 2, 3, 3])
    options = {"base_scores": np.zeros(9)} if isinstance(model, podium.models.TreesOnBaseScores) else {}
    with np.errstate(all="ignore"), unless_refused():
        assert model.predict(data, n_threads=1, **options).shape == (9,)
    for part in (model, *getattr(model, "parts", ())):
        part.digest(), part.importance()
        if hasattr(part, "dump"):
            part.truncate(part.n_trees // 2).digest()
            part.dump("text"), part.dump("json")
        if isinstance(part, podium.models.Ensemble):
            with unless_refused():
                part.leaves(features)
            trees = [part.tree(k) for k in range(part.n_trees)]
            schema = {"feature_names": part.feature_names, "encoding": part.encoding, "info": part.info}
            assert podium.models.Ensemble.of_trees(trees, part.n_features, **schema).digest() == part.digest()
    save(model, again)
    assert podium.load(again).digest() == model.digest()


def fuzz(folder, seed, cases):
    """Change files, use those that load, and return their number."""
    sources = sorted(MODELS.glob("*.podium"))
    loaded = 0
    for case in range(cases):
        rng = np.random.default_rng([seed, case])
        target = folder / "case.podium"
        make_case(rng, sources[rng.integers(0, len(sources))], target)
        print(seed, case, file=sys.stderr, flush=True)  # to repeat a crash
        try:
            model = podium.load(target)
        except podium.FileFormatError:
            continue
        except podium.DataError as error:
            if "module=" not in str(error):  # a custom net
                raise
            continue
        loaded += 1
        use(model, folder / "again.podium")
    return loaded


if __name__ == "__main__":
    print(fuzz(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
