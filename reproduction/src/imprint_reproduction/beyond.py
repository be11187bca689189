"""Studies beyond the paper as a collection: `imprint study run beyond/layers`."""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from html import escape
from operator import add
from pathlib import Path

from imprint.core.errors import ParameterError
from imprint.extend import make_folder, unknown, write_outputs
from imprint.report import TextTable, html
from imprint.study import (
    CollectionReport,
    NamedStudy,
    RunOptions,
    Study,
    StudyCollection,
    StudySelection,
    Summary,
)
from imprint.study import run as run_study
from imprint_reproduction import layers
from imprint_reproduction.artefact import (
    FORMAT,
    NotRunError,
    read_json,
    write_json,
)
from imprint_reproduction.layer_claims import judge
from imprint_reproduction.layer_tables import TABLES, LayerResults
from imprint_reproduction.layers import Network
from imprint_reproduction.sections import Claims, Run, Section, Verdict

PREFIX = "beyond/"
RECORD = "beyond.json"
TITLE = "Several layers and places of a network in one embedding"
PAGE = "layers"


@dataclass(frozen=True)
class LayersStudy(NamedStudy):
    """`beyond/layers` on the packs of a folder."""

    folder: str
    networks: tuple[Network, ...]

    def batches(self) -> list[list[Study]]:
        return [list(n.studies(self.folder).values()) for n in self.networks]

    def run(self, out: Path, options: RunOptions) -> Summary:
        """Compute what is missing, network by network, and measure NC1."""
        make_folder(out)
        networks = [asdict(network) for network in self.networks]
        record = {"format": FORMAT, "folder": self.folder, "networks": networks}
        write_json(out / RECORD, record)
        total = Summary(0, 0, 0, 0.0, ())
        for batch in self.batches():
            part = run_study(
                batch,
                out / batch[0].name,
                workers=options.workers,
                engine=options.engine,
                limit=options.limit,
                progress=options.progress,
            )
            total = Summary(*map(add, astuple(total), astuple(part)))
        layers.measure(self.folder, out, self.networks, options.measuring)
        return total

    def results(self, out: Path) -> list[str | TextTable]:
        """The tables, and the claims with their verdicts."""
        try:
            results = self.read(out)
        except NotRunError as error:
            return [str(error)]
        return parts_of(results)

    def read(self, out: Path) -> LayerResults:
        """The results of the networks that are finished."""
        accuracies = layers.read_accuracies(self.folder, out, self.networks)
        layouts = layers.read_layouts(out)
        finished = {at.network for at in accuracies}
        measured = {network for network, _ in layouts}
        networks = tuple(
            network for network in self.networks if network.name in finished & measured
        )
        if not networks:
            raise NotRunError(f"{out}: the study of no network is finished.")
        return LayerResults(networks, accuracies, layouts)


def tables(results: LayerResults) -> dict[str, TextTable]:
    """The tables by name that these networks allow."""
    left_out = set()
    if not results.pairs():
        left_out.update(set(TABLES) - {"networks", "nc1", "tokens"})
    if not results.pairs(has_places=False):
        left_out.add("tokens")
    return {
        name: table(results) for name, table in TABLES.items() if name not in left_out
    }


def judged_claims(results: LayerResults) -> Claims:
    """The claims with their verdicts as a table; none without a network with places."""
    found = tuple(judge(results)) if results.pairs() else ()
    section = Section("layers", TITLE, "", "", claims=found)
    run = Run("here", "", (section,))
    return Claims.of([[(run, section)]], [run])


def parts_of(results: LayerResults) -> list[str | TextTable]:
    """The tables, the claims with their verdicts, and how many hold."""
    parts: list[str | TextTable] = [*tables(results).values()]
    claims = judged_claims(results)
    if claims:
        parts += [claims_table(claims), tally(claims)]
    return parts


def claims_table(claims: Claims) -> TextTable:
    """The claims as a table, without the column of published results."""
    table = claims.table()
    rows = tuple(row[:-1] for row in table.rows)
    return TextTable(("claim", "here"), rows, numbers=2)


def tally(claims: Claims) -> str:
    """How many claims the results support."""
    counts = claims.count("here")
    supported = counts[Verdict.HOLDS]
    contradicted = counts[Verdict.FAILS]
    return (
        f"{counts.total()} claims: the results support {supported}, contradict"
        f" {contradicted} and cannot test {counts[Verdict.UNTESTABLE]}."
    )


def as_markdown(parts: Sequence[str | TextTable]) -> str:
    """Paragraphs and tables as a page of Markdown."""
    lines = [f"# {TITLE}", ""]
    for part in parts:
        if isinstance(part, str):
            lines += [part, ""]
        else:
            lines += part.markdown()
    return "\n".join(lines)


def as_html(parts: Sequence[str | TextTable]) -> str:
    """Paragraphs and tables as one HTML page."""
    contents = []
    for part in parts:
        if isinstance(part, str):
            contents.append(f"<p>{escape(part)}</p>")
        else:
            contents.append(part.html())
    return html.document(TITLE, *contents)


class BeyondStudies(StudyCollection):
    """Studies that go beyond the paper."""

    def listing(self) -> list[dict[str, str]]:
        return [{"name": f"{PREFIX}{layers.NAME}", "title": TITLE, "where": ""}]

    def select(self, name: str, selection: StudySelection) -> LayersStudy:
        short = name.removeprefix(PREFIX)
        if short != layers.NAME:
            raise unknown("study", name, [f"{PREFIX}{layers.NAME}"])
        if selection.embeddings is None:
            raise ParameterError(
                f"study run {name}: name the folder of the packs NETWORK-SET.npz:"
                " --embeddings DIR."
            )
        networks = layers.find_networks(
            selection.embeddings, selection.backbones, selection.datasets
        )
        return LayersStudy(str(selection.embeddings), tuple(networks))

    def is_run(self, folder: Path) -> bool:
        return (folder / RECORD).is_file()

    def report(self, folders: Sequence[Path], to: Path) -> CollectionReport:
        """Write the tables and claims of one run as Markdown."""
        if len(folders) > 1:
            raise ParameterError("study report: beyond/layers is reported by itself.")
        results = read_run(folders[0])
        parts = parts_of(results)
        pages = {f"{PAGE}.html": as_html(parts), f"{PAGE}.md": as_markdown(parts)}
        files = write_outputs(to, {name: page.encode() for name, page in pages.items()})
        judged = judge(results) if results.pairs() else []
        as_json = [{"study": f"{PREFIX}{layers.NAME}", **asdict(c)} for c in judged]
        return CollectionReport(files, as_json, parts)


def read_run(folder: Path) -> LayerResults:
    """The results in the folder of a run."""
    record = read_json(folder / RECORD)
    networks = tuple(
        Network(n["name"], tuple(n["datasets"]), tuple(n["blocks"]))
        for n in record["networks"]
    )
    return LayersStudy(record["folder"], networks).read(folder)


BEYOND = BeyondStudies()
"""The object of the entry point."""
