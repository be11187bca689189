"""Invalid specifications of studies are refused in one sentence."""

import json
import time

import numpy as np
import pytest
import yaml

from imprint.core.errors import ImprintError
from imprint.study import Grid, Held, Study, plan

LONGEST = 5.0  # maximum seconds per file
X, Y = (
    np.random.default_rng(1).normal(size=(36, 5)).astype(np.float32),
    np.repeat(np.arange(3), 12),
)
SOURCE = Held({("a", "one"): (X, Y, X[::3], Y[::3])})
STUDY = Study(
    backbones="a", datasets="one", grid=Grid(generator=["mean", "random"], k=[1, 3])
)


def sentence(call):
    """The error message of a call; None if it succeeds."""
    try:
        call()
    except ImprintError as e:
        return str(e)


SPECS = {
    "name: 2024-01-01": "name must be text",
    "name: [a]": "name must be text",
    "embeddings: 5": "embeddings must be text",
    "backbones: [[a, b]]": "backbones must be text",
    "backbones: &a [*a]": "backbones must be text",
    "backbones: {a: 1}": "backbones must be text",
    "datasets: [1]": "datasets must be text",
    "tasks: [{a: b}]": "tasks must be a text such as",
    "seeds: [9223372036854775808]": r"seeds must be int >= 0 and below 2\*\*63",
    "seeds: [1.5]": "seeds must be int",
    "seeds: yes": "seeds must be int",
    "shots: [0]": "shots must be int >= 1",
    "recipes: [[qi2018]]": "recipes must be text",
    "rules: [{a: 1}]": "rules must be text",
    "grid: [3]": "grid must be a mapping",
    "grid: {generator: [[mean]]}": "generator must be a text such as",
    "grid: {generator: {mean: 1}}": "generator must be a text such as",
    "grid: {k: [a]}": "k must be int >= 1",
    "grid: {k: 9223372036854775808}": "k must be int >= 1",
    "grid: &g {generator: [*g]}": "generator must be a text such as",
    "? [a]\n: b": "not YAML",
    "2024-01-01: 3": "Unknown key of a study",
    "name: 2024-13-99": "not YAML",
    "seeds: " + "[" * 3000 + "]" * 3000: "not YAML",
    "a: &a [x]\nb: &b [*a, *a]\nbackbones: [*b, *b]": "Unknown key of a study 'a'",
    "- 1": "A study is a mapping",
    "\x00": "not YAML",
}


@pytest.mark.parametrize("text", SPECS, ids=lambda text: text[:24])
def test_a_bad_spec_is_one_sentence(tmp_path, text):
    given = {"backbones": "a", "datasets": "one", "recipes": "qi2018"}
    rest = "".join(
        f"{key}: {value}\n" for key, value in given.items() if f"{key}:" not in text
    )
    whole = text if text.startswith(("-", "?", "\x00")) else f"{text}\n{rest}"
    (tmp_path / "study.yaml").write_text(whole)
    with pytest.raises(ImprintError, match=SPECS[text]) as e:
        Study.read(tmp_path / "study.yaml")
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 600


PLAIN = {**STUDY.to_json(), "embeddings": "packs", "recipes": ["qi2018"]}
WILD = [
    None,
    -1,
    2**70,
    1.5,
    "",
    "a\n",
    [],
    [[]],
    {},
    {"k": []},
    True,
    "kmeans(",
    "l2 / mean",
    ["mean"] * 9,
]
WILD += [
    "\x1b[31m",
    "even | shots(n=0)",
    "shots(n=2) | " * 30 + "all",
    "d_in_1(d=2)",
    "nearest(m=99)",
    [1, 2],
    "..",
    "a-b",
]
SIGNS = [
    *"[]{}:,-&*!|>'\"%@`#?\t\n 0123456789\0\ufeffé",
    "<<: *a\n",
    "&a ",
    "*a",
    "!!python/name:os.system ",
    "\n---\n",
]


def mutated_values(draw):
    """A spec with up to three values replaced."""
    changed = json.loads(json.dumps(PLAIN))
    for _ in range(draw.integers(1, 4)):
        grid = changed["grid"] if isinstance(changed["grid"], list) else []
        where = (
            grid[0]
            if draw.random() < 0.4 and grid and isinstance(grid[0], dict)
            else changed
        )
        where[str(draw.choice(sorted(where)))] = WILD[draw.integers(len(WILD))]
    return json.dumps(changed)


def mutated_text(draw):
    """A spec with typing errors: characters removed, repeated or inserted."""
    text = yaml.safe_dump(PLAIN)
    for _ in range(draw.integers(1, 6)):
        at, end = sorted(draw.integers(len(text) + 1, size=2).tolist())
        end = min(end, at + 12)
        text = [
            text[:at] + text[end:],
            text[:end] + text[at:end] + text[end:],
            text[:at] + SIGNS[draw.integers(len(SIGNS))] + text[at:],
        ][draw.integers(3)]
    return text


@pytest.mark.parametrize("mutate", [mutated_values, mutated_text])
def test_500_mutated_specs_are_read_or_refused(tmp_path, mutate):
    path, read = tmp_path / "study.yaml", 0
    for seed in range(500):
        path.write_text(mutate(np.random.default_rng(seed)), encoding="utf-8")
        start = time.monotonic()
        message = sentence(lambda: plan(Study.read(path), SOURCE))
        assert time.monotonic() - start < LONGEST, seed
        assert message is None or ("\n" not in message and len(message) < 1500), seed
        read += message is None
    assert 5 < read < 400, "the mutants must neither all be refused nor all be harmless"
