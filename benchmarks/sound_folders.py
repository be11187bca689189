"""Convert three public sets of recordings to folders that `imprint` reads: TO/NAME/train/CLASS/*.wav and TO/NAME/test.

python benchmarks/sound_folders.py ESC-50 FSDD EMODB TO

ESC-50: a clone of karolpiczak/ESC-50; the test part is its fifth fold. FSDD: a clone of
Jakobovski/free-spoken-digit-dataset; the test part is recordings 0 to 4 of every speaker and digit, as its authors
recommend. EMODB: the folder `wav` of the Berlin Database of Emotional Speech (the figures use the copy in
sylaschacko/voice-emotion-analysis); the test part is speakers 15 and 16, who have no training recordings.
Files are linked, not copied, if the file system supports it.
"""

import csv
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

EMOTIONS = {
    "W": "anger",
    "L": "boredom",
    "E": "disgust",
    "A": "fear",
    "F": "happiness",
    "T": "sadness",
    "N": "neutral",
}


def esc50(root: Path) -> Iterator[tuple[Path, str, str]]:
    with open(root / "meta/esc50.csv", newline="") as f:
        for row in csv.DictReader(f):
            yield (
                root / "audio" / row["filename"],
                row["category"],
                "test" if row["fold"] == "5" else "train",
            )


def fsdd(root: Path) -> Iterator[tuple[Path, str, str]]:
    for path in sorted((root / "recordings").glob("*.wav")):
        digit, _, number = path.stem.split("_")
        yield path, digit, "test" if int(number) < 5 else "train"


def emodb(root: Path) -> Iterator[tuple[Path, str, str]]:
    for path in sorted(root.glob("*.wav")):
        yield (
            path,
            EMOTIONS[path.stem[5]],
            "test" if path.stem[:2] in ("15", "16") else "train",
        )


def main(roots: dict[str, Path], to: Path) -> None:
    for read in (esc50, fsdd, emodb):
        count = 0
        for path, label, part in read(roots[read.__name__]):
            goal = to / read.__name__ / part / label / path.name
            goal.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, goal)
            except FileExistsError:
                pass
            except OSError:
                shutil.copyfile(path, goal)
            count += 1
        print(f"{to / read.__name__}: {count:,} recordings")


if __name__ == "__main__":
    main(
        dict(zip(("esc50", "fsdd", "emodb"), map(Path, sys.argv[1:4]))),
        Path(sys.argv[4]),
    )
