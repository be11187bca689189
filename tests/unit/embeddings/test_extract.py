"""Extraction: correct rows in order, unreadable inputs listed, bounded threads and memory."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.core.files.atomic import exclusive
from imprint.embeddings import EmbeddingProgress, embed, extract


@pytest.mark.parametrize("batch_size", [1, 7, 50, 64])
@pytest.mark.parametrize("workers", [1, 3])
def test_rows_are_those_of_the_backbone_in_order(
    make_backbone, make_split, tmp_path, batch_size, workers
):
    backbone, split = make_backbone(), make_split(50)
    e = extract(
        backbone, split, batch_size=batch_size, workers=workers, folder=tmp_path
    )
    alone = np.concatenate(
        [backbone.embed(backbone.prepare(split.inputs[i])[None]) for i in range(50)]
    )
    np.testing.assert_allclose(e.X, alone, rtol=1e-5, atol=1e-6)
    assert e.X.dtype == np.float32
    np.testing.assert_array_equal(e.y, split.labels)
    assert list(e.names) == split.names
    assert e.skipped == ()


def test_rows_are_memory_mapped_and_cannot_be_written(
    make_backbone, make_split, tmp_path
):
    X = extract(make_backbone(), make_split(), folder=tmp_path).X
    assert isinstance(X, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        X[0] = 0


def test_second_call_opens_what_is_stored(make_backbone, make_split, tmp_path):
    first = extract(make_backbone(), make_split(), folder=tmp_path)
    backbone = make_backbone()
    second = extract(backbone, make_split(), folder=tmp_path)
    assert backbone.batches == []
    assert second.key == first.key
    np.testing.assert_array_equal(first.X, second.X)


def test_other_data_or_backbone_is_stored_apart(make_backbone, make_split, tmp_path):
    keys = {
        extract(b, s, folder=tmp_path).key
        for b in (make_backbone(8), make_backbone(9))
        for s in (make_split(5), make_split(6))
    }
    assert len(keys) == 4


def test_stored_data_under_other_names_gets_the_callers_names(
    make_backbone, make_split, tmp_path
):
    extract(make_backbone(), make_split(9, unreadable=[2]), folder=tmp_path)
    e = extract(
        make_backbone(), make_split(9, unreadable=[2], prefix="moved"), folder=tmp_path
    )
    assert list(e.names[:3]) == ["moved/0", "moved/1", "moved/3"]
    assert e.skipped[0].name == "moved/2"


@pytest.mark.parametrize("bad", [[0], [49], [3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4, 20]])
def test_unreadable_inputs_are_skipped_by_name(
    make_backbone, make_split, tmp_path, bad
):
    whole = extract(make_backbone(), make_split(50), batch_size=5, folder=tmp_path)
    e = extract(
        make_backbone(), make_split(50, unreadable=bad), batch_size=5, folder=tmp_path
    )
    good = [i for i in range(50) if i not in bad]
    np.testing.assert_allclose(e.X, whole.X[good], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(e.y, whole.y[good])
    np.testing.assert_array_equal(e.index, good)
    assert list(e.names) == [f"train/{i}" for i in good]
    assert [(s.index, s.name, s.reason) for s in e.skipped] == [
        (i, f"train/{i}", "the file is truncated") for i in bad
    ]


def test_nothing_readable_is_an_error_and_leaves_nothing_behind(
    make_backbone, make_split, tmp_path
):
    split = make_split(4, unreadable=range(4))
    with pytest.raises(
        ImprintError,
        match=r"None of the 4 inputs .* the first, train/0: the file is truncated",
    ):
        extract(make_backbone(), split, folder=tmp_path)
    assert [p.suffix for p in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused_by_name(
    make_backbone, make_split, tmp_path, value
):
    backbone, split = make_backbone(), make_split(20, unreadable=[1, 9])
    honest = backbone.embed

    def embed(batch):
        rows = honest(batch)
        if len(backbone.batches) == 3:
            rows[2, 3] = value
        return rows

    backbone.embed = embed
    with pytest.raises(
        ImprintError, match="The embedding of train/11 by projection is not finite"
    ):
        extract(backbone, split, batch_size=4, folder=tmp_path)
    backbone.embed = honest
    extract(backbone, split, batch_size=4, folder=tmp_path)
    assert backbone.batches == [3, 4, 3, 3, 4, 4]  # the refused batch is embedded twice


@pytest.mark.parametrize(
    "wrong", [lambda r: r[:-1], lambda r: r[:, :-1], lambda r: r.astype(np.float64)]
)
def test_rows_of_the_wrong_shape_or_kind_are_refused(
    make_backbone, make_split, tmp_path, wrong
):
    backbone = make_backbone()
    honest = backbone.embed
    backbone.embed = lambda batch: wrong(honest(batch))
    with pytest.raises(
        ImprintError,
        match=r"projection gave .* they must be float32 of shape \(50, 8\)",
    ):
        extract(backbone, make_split(50), folder=tmp_path)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "8"])
@pytest.mark.parametrize("name", ["batch_size", "workers"])
def test_counts_are_checked(make_backbone, make_split, tmp_path, name, bad):
    with pytest.raises(
        ParameterError, match=rf"extract\({name}=.*\): {name} must be int >= 1"
    ):
        extract(make_backbone(), make_split(), folder=tmp_path, **{name: bad})


def test_an_unknown_engine_is_refused(make_backbone, make_split, tmp_path):
    with pytest.raises(
        ParameterError, match=r"Unknown engine 'spark'\. Known: local, ray\."
    ):
        extract(make_backbone(), make_split(), folder=tmp_path, engine="spark")
    assert not list(tmp_path.iterdir())


def test_data_without_inputs_or_labels_are_refused(make_backbone, make_split, tmp_path):
    for split in (make_split(0), make_split(5, labels=[])):
        with pytest.raises(
            ParameterError, match=r"extract\(split with .* at least one input"
        ):
            extract(make_backbone(), split, folder=tmp_path)


def test_text_labels_come_back(make_backbone, make_split, tmp_path):
    split = make_split(4, labels=["käse", "b", "b", "käse"])
    np.testing.assert_array_equal(
        extract(make_backbone(), split, folder=tmp_path).y, split.labels
    )


def test_texts_reach_the_backbone_as_they_are(make_backbone, make_split, tmp_path):
    backbone, split, seen = make_backbone(width=1), make_split(3), []
    split.inputs = ["a", "longer than the others\0", ""]

    def embed(batch):
        seen.append(batch)
        return np.float32([[len(text)] for text in batch])

    backbone.prepare, backbone.embed = str, embed
    assert extract(backbone, split, folder=tmp_path).X.ravel().tolist() == [1, 23, 0]
    assert seen == [split.inputs]


def test_progress_counts_up_and_estimates(make_backbone, make_split, tmp_path):
    seen: list[EmbeddingProgress] = []
    extract(
        make_backbone(),
        make_split(50, unreadable=[0]),
        batch_size=20,
        folder=tmp_path,
        progress=seen.append,
    )
    assert [(p.done, p.total, p.skipped) for p in seen] == [
        (0, 50, 0),
        (20, 50, 1),
        (40, 50, 1),
        (50, 50, 1),
    ]
    assert seen[0].rate is None
    assert all(p.rate > 0 for p in seen[1:])
    assert seen[2].eta == pytest.approx(10 / seen[2].rate)
    assert seen[-1].eta == 0


def test_progress_moves_within_a_batch_where_the_network_takes_few_inputs_at_once(
    make_backbone, make_split, tmp_path
):
    backbone, seen = make_backbone(), []
    backbone.slice_rows = 6
    e = extract(
        backbone, make_split(80, unreadable=[3]), folder=tmp_path, progress=seen.append
    )
    assert [p.done for p in seen[:4]] == [0, 6, 12, 18]
    assert [p.done for p in seen[-5:]] == [60, 64, 70, 76, 80]
    assert max(backbone.batches) == 6
    whole = extract(
        make_backbone(), make_split(80, unreadable=[3]), folder=tmp_path / "whole"
    )
    np.testing.assert_allclose(e.X, whole.X, atol=1e-6)


def test_progress_moves_within_the_first_batch_of_every_network(
    make_backbone, make_split, tmp_path
):
    done, calls, backbone = [], [], make_backbone()
    embed_rows = backbone.embed
    backbone.embed = lambda batch: calls.append(len(batch)) or embed_rows(batch)
    embed(
        backbone,
        make_split(130),
        folder=tmp_path,
        progress=lambda p: done.append(p.done),
    )
    assert done == [0, 16, 32, 48, 64, 128, 130]
    assert calls == [16, 16, 16, 16, 64, 2]


def test_the_default_backbone_of_images_shows_progress_within_a_batch(tmp_path):
    from imprint import backbones, datasets

    seen, images = [], datasets.load("digits", "test", labelled=False)
    backbone = backbones.load("efficientnet_lite0")
    assert 1 <= backbone.slice_rows < 16
    first = SimpleNamespace(inputs=images.inputs[:20], names=images.names[:20])
    embed(backbone, first, progress=seen.append, remember=False)
    assert 1 <= seen[1].done < 16


def test_only_a_few_batches_are_prepared_ahead(make_backbone, make_split, tmp_path):
    backbone, split, ahead = make_backbone(), make_split(400), []
    prepared, embedded, honest = [], [], (backbone.prepare, backbone.embed)

    def prepare(item):
        prepared.append(1)
        return honest[0](item)

    def embed(batch):
        time.sleep(0.005)
        ahead.append(len(prepared) - len(embedded))
        embedded.extend(batch)
        return honest[1](batch)

    backbone.prepare, backbone.embed = prepare, embed
    extract(backbone, split, batch_size=10, workers=4, folder=tmp_path)
    assert max(ahead) <= 30
    assert len(prepared) == 400


def test_preparing_overlaps_with_embedding(make_backbone, make_split, tmp_path):
    backbone, split = make_backbone(), make_split(40)
    main, others, honest = threading.get_ident(), threading.Event(), backbone.prepare
    during: list[bool] = []

    def prepare(item):
        assert threading.get_ident() != main
        others.set()
        return honest(item)

    def embed(batch):
        others.clear()
        during.append(others.wait(0.05))
        return np.zeros((len(batch), 8), np.float32)

    def slow(item):
        time.sleep(0.001)
        return prepare(item)

    backbone.prepare, backbone.embed = slow, embed
    extract(backbone, split, batch_size=5, workers=2, folder=tmp_path)
    assert any(during)


def test_two_at_once_share_one_extraction(make_backbone, make_split, tmp_path):
    backbones, seen = [make_backbone(), make_backbone()], []
    slow = backbones[0].embed

    def embed(batch):
        time.sleep(0.02)
        return slow(batch)

    backbones[0].embed = embed
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(
            extract, backbones[0], make_split(), batch_size=5, folder=tmp_path
        )
        while not list(tmp_path.glob("*.partial")):
            time.sleep(0.001)
        second = pool.submit(
            extract,
            backbones[1],
            make_split(),
            batch_size=5,
            folder=tmp_path,
            progress=seen.append,
        )
    np.testing.assert_array_equal(first.result().X, second.result().X)
    assert backbones[1].batches == []
    assert seen
    assert all(p.waiting for p in seen)


def test_lock_excludes_and_is_dropped(tmp_path):
    class WaitedError(Exception):
        pass

    def give_up():
        raise WaitedError

    with (
        exclusive(tmp_path / "a"),
        pytest.raises(WaitedError),
        exclusive(tmp_path / "a", give_up),
    ):
        pass
    with exclusive(tmp_path / "a", give_up):
        pass


def test_a_folder_that_cannot_be_made_is_one_sentence(
    make_backbone, make_split, tmp_path
):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match=r"Cannot write .*file"):
        extract(make_backbone(), make_split(), folder=tmp_path / "file" / "below")
