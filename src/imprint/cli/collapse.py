"""`imprint collapse`."""

from dataclasses import asdict

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli.embed import embed_splits
from imprint.collapse import cdnv, nc1, nc2, vci

MEANINGS = {
    "nc1": "variance within classes relative to that between classes; 0 when collapsed",
    "cdnv": "the same ratio, averaged over pairs of classes; 0 when collapsed",
    "vci": "variability collapse index; 0 when collapsed, 1 without collapse",
    "equinorm": "NC2: variation of the norms of the centred class means; 0 when equal",
    "equiangular": "NC2: deviation of their angles from maximal and equal; 0 when collapsed",
    "etf": "NC2: deviation of the class means from a simplex ETF; 0 when collapsed",
}


def command(
    data: options.Data,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    backbone: options.Backbone = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Measure the neural collapse of a data set's embeddings.

    That is how close the embeddings of each class are to their mean, and how evenly the means are spread.
    """
    columns = {"labels": labels, "label_column": label_column, "text_column": text_column}
    rows = embed_splits(data, backbone, device, threads, tests=False, columns=columns)["train"]
    n, d = rows.X.shape
    metrics: dict[str, float | None] = {"nc1": nc1(rows.X, rows.y), "cdnv": cdnv(rows.X, rows.y)}
    metrics["vci"] = vci(rows.X, rows.y) if n > d else None  # with no more rows than columns it is always 0
    metrics |= asdict(nc2(rows.X, rows.y))
    if json:
        terminal.emit({"data": data, "backbone": backbone, "rows": n, **metrics})
    else:
        lines = [(name, _shown(value), MEANINGS[name]) for name, value in metrics.items()]
        terminal.table(["metric", "value", "meaning"], lines, right=["value"])
        if metrics["vci"] is None:
            terminal.note(f"vci cannot be computed: it needs more rows than columns, and there are {n:,} and {d:,}.")
    terminal.finish(rows.skipped)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 4) + 0.0:.4f}"
