"""Child process for kill tests; it extracts embeddings: `python extraction_child.py STORE LOG PAUSE [ENGINE]`.

Each embedded batch adds a line to LOG: its digest and the session that computed it, which identifies the node of a
Ray cluster. Each batch takes at least PAUSE seconds, so that a kill can interrupt it.
"""

import os
import sys
import time
from types import SimpleNamespace

import numpy as np

from imprint.core.arrays import digest
from imprint.core.errors import UnreadableInput
from imprint.embeddings import extract

INPUTS, BATCH, WIDTH = 4000, 16, 64


class Inputs:
    def __init__(self, places):
        self.places = places

    def __len__(self):
        return len(self.places)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Inputs(self.places[i])
        i = self.places[i]
        if i % 97 == 5:
            raise UnreadableInput(f"{i}.png", "the file is truncated")
        return np.random.default_rng(i).integers(0, 256, (8, 8), np.uint8)


class Backbone:
    record, width = SimpleNamespace(name="projection"), WIDTH
    matrix = np.random.default_rng(0).normal(size=(64, WIDTH)).astype(np.float32)
    fingerprint = digest([matrix])

    def __init__(self, log, pause):
        self.pickled = Backbone, (log, pause)
        self.log, self.pause = (
            os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
            pause,
        )

    def __reduce__(self):
        return self.pickled

    def prepare(self, item):
        return item.astype(np.float32).ravel() / 255

    def embed(self, batch):
        time.sleep(self.pause)
        session = os.getsid(0) if hasattr(os, "getsid") else 0
        os.write(self.log, f"{digest([batch])[:16]} {session}\n".encode())
        return np.tanh(batch @ self.matrix)


if __name__ == "__main__":
    store, log, pause, *engine = sys.argv[1:]
    names = [f"{i}.png" for i in range(INPUTS)]
    split = SimpleNamespace(
        inputs=Inputs(range(INPUTS)),
        labels=np.arange(INPUTS) % 7,
        names=names,
        fingerprint="d0",
    )
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    how = {"engine": engine[0]} if engine else {"workers": 2}
    extract(Backbone(log, float(pause)), split, batch_size=BATCH, folder=store, **how)
