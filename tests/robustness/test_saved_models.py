"""Saved models: the same predictions back, or one clear error; never code, a crash or a wrong model."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import os
import stat
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import boostplugins
from boostplugins import _files
from boostplugins._files import read_model, write_bytes, write_model

from .small_models import MAKERS, N_ROWS, fitted, make, predictor, rows

SAVED = Path(__file__).resolve().parents[1] / "data" / "saved"
FORMATS = sorted(folder.name for folder in SAVED.iterdir())
MUTATIONS = 1000  # of each format and layout
KNOWN = 12  # rows whose predictions are stored


def kind_of(name):
    return getattr(boostplugins, MAKERS[name][0])


def public_estimators():
    held = (getattr(boostplugins, name) for name in boostplugins.__all__)
    kinds = {item for item in held if inspect.isclass(item) and issubclass(item, BaseEstimator)}
    return {kind for kind in kinds if hasattr(kind, "predict")}


def test_every_public_estimator_is_among_the_tiny_ones():
    assert public_estimators() == {kind_of(name) for name in MAKERS}


@pytest.mark.parametrize("name", MAKERS)
def test_i04_files_give_the_same_bits(name, tmp_path):
    model = fitted(name)
    path = tmp_path / "model"
    assert model.save(path) is None
    again = kind_of(name).load(path)
    np.testing.assert_array_equal(predictor(again)(rows()), predictor(model)(rows()))
    again.save(tmp_path / "again")
    np.testing.assert_array_equal(
        predictor(kind_of(name).load(tmp_path / "again"))(rows()), predictor(model)(rows())
    )
    assert sorted(item.name for item in tmp_path.iterdir()) == ["again", "model"]
    with pytest.raises(Exception, match="not fitted"):
        make(name).save(tmp_path / "unfitted")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", MAKERS)
def test_old_files_stay_readable(form, name):
    path = SAVED / form / f"{name}.model"
    if not path.exists():
        assert (form, name) == ("format1", "hbart_cv")  # could not be saved then
        return
    with np.load(SAVED / form / "predictions.npz") as known:
        expected = known[name]
    found = predictor(kind_of(name).load(path))(rows()[:KNOWN])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def mutated(content, members, rng):
    """One random damage to a file: cut, flipped bits, a block of zeros or of noise, exchanged members."""
    # The first format has no checksum: nothing there tells that somebody packed parts under other names.
    kind = rng.integers(6 if content[-_files._SEAL_LENGTH :].startswith(b"boostplugins") else 5)
    body = bytearray(content)
    at = int(rng.integers(len(body)))
    if kind == 0:
        return bytes(body[:at])
    if kind == 1:
        body[at] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        body[at : at + 16] = bytes(len(body[at : at + 16]))
    elif kind == 3:
        body[at : at + 8] = rng.bytes(len(body[at : at + 8]))
    elif kind == 4:
        return bytes(body[:at] + rng.bytes(3) + body[at:])
    else:
        names = list(members)
        first, second = rng.choice(len(names), 2, replace=False)
        changed = members | {names[first]: members[names[second]], names[second]: members[names[first]]}
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, part in changed.items():
                archive.writestr(zipfile.ZipInfo(name), part)
        return stream.getvalue() + content[-_files._SEAL_LENGTH :] * bool(rng.integers(2))
    return bytes(body)


def equal(first, second):
    if (
        first.state != second.state
        or first.parts != second.parts
        or first.arrays.keys() != second.arrays.keys()
    ):
        return False
    return all(
        np.array_equal(array, second.arrays[name], equal_nan=array.dtype.kind == "f")
        for name, array in first.arrays.items()
    )


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("format1", "sglb_classifier_catboost"),
        ("format1", "sglb_classifier_lightgbm"),
        ("format1", "soft_tree"),
        ("format1", "hbart"),
        ("format2", "sglb_classifier_catboost"),
        ("format2", "distributional_lightgbm"),
        ("format2", "soft_tree"),
        ("format2", "hbart_cv"),
    ],
)
def test_f03_a_thousand_damages_are_each_one_clear_error(form, name, tmp_path):
    path, kind = SAVED / form / f"{name}.model", MAKERS[name][0]
    content, whole = path.read_bytes(), read_model(path, kind)
    with zipfile.ZipFile(path) as archive:
        members = {item: archive.read(item) for item in archive.namelist()}
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged"
    refused = 0
    for number in range(MUTATIONS):
        change = mutated(content, members, rng)
        damaged.write_bytes(change)
        found = None
        with contextlib.suppress(ValueError):  # any other error fails the test
            found = read_model(damaged, kind)
        refused += found is None
        if found is not None:
            # The first format's zip has bytes that mean nothing, such as dates; the seal covers all.
            assert form == "format1" or change == content, number
            if not equal(found, whole):  # a part is missing
                with pytest.raises(ValueError, match="damaged is no saved"):
                    kind_of(name).load(damaged)
    assert refused > 0.8 * MUTATIONS


def sealed(members, version=2, **options):
    """A file that its writer forged: the seal fits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are there twice
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", **options) as archive:
            for name, part in members:
                archive.writestr(name, part)
            archive.comment = _files._SEAL.format(version).encode() + b"0" * 64
    body = stream.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


HEAD = ("head.json", b'{"format": 2, "kind": "HNNRegressor", "parts": 0, "state": {}}')


def npy(text):
    head = text.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


HOSTILE = {
    "huge shape": [HEAD, ("a.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10**15,), }"))],
    "huger shape": [
        HEAD,
        ("a.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }\n")),
    ],
    "shape that overflows": [
        HEAD,
        ("a.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n")),
    ],
    "negative shape": [
        HEAD,
        ("a.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }\n") + bytes(8)),
    ],
    "empty strings without end": [
        HEAD,
        ("a.npy", npy("{'descr': '<U0', 'fortran_order': False, 'shape': (10000000000000,), }\n")),
    ],
    "objects": [
        HEAD,
        ("a.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n") + bytes(8)),
    ],
    "code": [HEAD, ("a.npy", npy("__import__('os').abort()\n"))],
    "deep header": [HEAD, ("a.npy", npy("(" * 9000 + "\n"))],
    "no magic": [HEAD, ("a.npy", b"zzz")],
    "deep JSON": [("head.json", b"[" * 200_000)],
    "JSON of a list": [("head.json", b"[]")],
    "no head": [("a.npy", b"")],
    "two heads": [HEAD, HEAD],
    "parts without end": [("head.json", b'{"format": 2, "kind": "HNNRegressor", "parts": 1e9, "state": {}}')],
    "many parts": [("head.json", b'{"format": 2, "kind": "x", "parts": 999999999999, "state": {}}')],
    "older head": [("head.json", b'{"format": 1, "kind": "HNNRegressor", "parts": 0, "state": {}}')],
    "kind of no name": [("head.json", b'{"format": 2, "kind": [], "parts": 0, "state": {}}')],
    "empty state": [HEAD],
}


@pytest.mark.parametrize("forgery", HOSTILE)
def test_f03_forged_files_are_one_clear_error_and_take_no_memory(forgery, tmp_path):
    path = tmp_path / "forged"
    path.write_bytes(sealed(HOSTILE[forgery]))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="forged is no saved"):
            boostplugins.HNNRegressor.load(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("claim", ["honest", "lying", "packed otherwise"])
def test_f03_bombs_are_refused_before_they_unpack(claim, tmp_path):
    size = 90 << 20
    options = {"compression": zipfile.ZIP_LZMA if claim == "packed otherwise" else zipfile.ZIP_DEFLATED}
    body = sealed([HEAD, ("a.npy", bytes(size if claim != "packed otherwise" else 1000))], **options)
    if claim == "lying":  # of 100 bytes, in both of the zip's records
        body = body[:-64].replace(struct.pack("<I", size), struct.pack("<I", 100))
        body += hashlib.sha256(body).hexdigest().encode()
    path = tmp_path / "bomb"
    path.write_bytes(body)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="bomb is no saved model of boostplugins"):
            boostplugins.HNNRegressor.load(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_files_that_pack_like_bombs_are_stored_plainly(tmp_path):
    path = tmp_path / "zeros"
    write_model(path, "Zeros", {}, {"a": np.zeros(12 << 20)})
    assert not read_model(path, "Zeros").arrays["a"].any()


def test_a_later_format_is_named(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(sealed([("whatever", b"")], version=7))
    with pytest.raises(ValueError, match="has format 7, this version reads formats up to 2; update"):
        boostplugins.SGLBRegressor.load(path)


def test_files_of_other_estimators_and_no_files_at_all(tmp_path):
    with pytest.raises(ValueError, match=r"holds a SoftTreeRegressor, not a HNNRegressor; load it with"):
        boostplugins.HNNRegressor.load(SAVED / "format2" / "soft_tree.model")
    with pytest.raises(FileNotFoundError):
        boostplugins.HNNRegressor.load(tmp_path / "none")
    with pytest.raises(ValueError, match="is no saved model"):
        boostplugins.HNNRegressor.load(tmp_path)


LABELS = {
    "int": np.array([7, -3]),
    "int8": np.array([7, -3], dtype=np.int8),
    "bool": np.array([False, True]),
    "float": np.array([1.0, 2.0]),
    "str": np.array(["birch", "ash"]),
    "object": np.array(["birch", "ash"], dtype=object),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    "name", ["sglb_classifier_catboost", "sglb_classifier_lightgbm", "soft_classifier", "bart_classifier"]
)
def test_labels_come_back_as_they_were(name, kind, tmp_path):
    X = rows()
    y = LABELS[kind][(X[:, 0] > 0.5).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(name).fit(X, y)
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    assert [type(label) for label in again.classes_] == [type(label) for label in model.classes_]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_labels_that_no_file_can_hold_are_named(tmp_path):
    model = fitted("bart_classifier")
    model.classes_ = np.array([pd.Timestamp("2024-01-01"), pd.Timestamp("2025-01-01")], dtype=object)
    with pytest.raises(ValueError, match="numbers or strings to be saved, got Timestamp"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "model"
    write_bytes(path, b"old")
    for broken in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def interrupt(*_):
                raise KeyboardInterrupt

            patch.setattr(os, broken, interrupt)
            with pytest.raises(KeyboardInterrupt):
                write_bytes(path, b"new, and longer")
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"


# Elsewhere a file has no mode that could be wrong.
@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_files_have_the_mode_that_any_new_file_has(tmp_path):
    (tmp_path / "plain").touch()
    fitted("mc_dropout").save(tmp_path / "model")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


# Windows has no named pipes to make, and `chmod` there knows one bit; replacing files is tested everywhere.
@pytest.mark.skipif(os.name != "posix", reason="links, modes and pipes are POSIX")
def test_links_modes_and_pipes_are_kept(tmp_path):
    kept, link, pipe = tmp_path / "kept", tmp_path / "link", tmp_path / "pipe"
    kept.write_bytes(b"old")
    kept.chmod(0o600)
    link.symlink_to(kept)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert kept.read_bytes() == b"new"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_bytes(pipe, b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [kept, link, pipe]
    with kept.open("ab") as log:  # as the standard output of `>> FILE`
        write_bytes(f"/dev/fd/{log.fileno()}", b" and more")
        log.write(b", and the rest")
    assert kept.read_bytes() == b"new and more, and the rest"


def test_equal_models_make_equal_files(tmp_path):
    for number in range(2):
        fitted("hbart").save(tmp_path / f"model{number}")
    first, second = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first == second


def forged(content, rng):
    """Change one number of the arrays, their length or type, or one entry of the state."""
    state, arrays, _ = content
    name = list(arrays)[int(rng.integers(len(arrays)))]
    array = np.array(arrays[name])
    kind = rng.integers(4)
    if kind == 0 and array.size:
        wild = [-1, 255, 256, 2**31 - 1, -(2**31), 0, 1]
        with np.errstate(all="ignore"):
            array.reshape(-1)[int(rng.integers(array.size))] = np.array(wild)[rng.integers(7)].astype(
                array.dtype
            )
    elif kind == 1:
        array = array[: len(array) // 2] if array.ndim else array
    elif kind == 2:
        array = np.concatenate([array, array]) if array.ndim else array
    else:
        array = array.astype([np.float32, np.int64, np.uint8][rng.integers(3)])
    return state, arrays | {name: array}


@pytest.mark.parametrize(
    "name", ["soft_tree", "soft_forest", "soft_boosting", "usnrt", "mc_dropout", "hbart_forest"]
)
def test_forged_arrays_never_end_the_process(name, tmp_path):
    """What a seal cannot know: numbers that compiled passes would trust."""
    path, kind = SAVED / "format2" / f"{name}.model", MAKERS[name][0]
    content, rng = read_model(path, kind), np.random.default_rng(1)
    X = rows()[: N_ROWS // 4]
    for _ in range(60):
        write_model(tmp_path / "forged", kind, *forged(content, rng))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                model = kind_of(name).load(tmp_path / "forged")
            except ValueError:
                continue
            try:
                model.predict(X)
            except Exception:  # whatever numpy and numba have to say to such numbers
                continue
