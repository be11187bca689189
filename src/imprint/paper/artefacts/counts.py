"""What the paper says of its data and code, where that can be counted."""

from dataclasses import dataclass

from imprint.datasets import record
from imprint.paper.artefact import Artefact
from imprint.paper.results import Results
from imprint.report.sections import Claim, Section, Verdict, verdict

STATED_USPS = 7219


@dataclass(frozen=True, kw_only=True)
class Counts(Artefact):
    """Statements that need no experiment."""

    def section(self, name: str, results: Results) -> Section:
        usps = record("usps").train
        claims = (
            Claim(
                f"USPS has {STATED_USPS:,} training pictures.",
                verdict(usps == STATED_USPS),
                f"the published files hold {usps:,}",
                Verdict.FAILS,
                "the stored sizes of CombiDigits give 200,548 - 193,257 = 7,291",
            ),
            Claim(
                "The shipped configurations make about 500,000 experiments.",
                Verdict.UNTESTABLE,
                "another grid runs here",
                Verdict.FAILS,
                "they name 405,060; 501,338 stored runs went into the analysis",
            ),
            Claim(
                '"d in 1" gives the first d classes to label 1, the next d to label 2.',
                Verdict.UNTESTABLE,
                "both kinds exist here: d_in_1(kind='sequential') and kind='nested'; the studies use nested",
                Verdict.FAILS,
                "the maps behind the published results are nested: label j takes the first d of the j-th ten classes",
            ),
            Claim(
                "k-medoids is scikit-learn's.",
                Verdict.UNTESTABLE,
                "scikit-learn has none; both searches are written anew here",
                Verdict.FAILS,
                "it is the alternating search of scikit-learn-extra, which starts from the centre of a class",
            ),
        )
        return Section(name, self.title, self.where, "Counted, or read from what was published.", (), claims)


artefact = Counts(title="Statements about data and code", where="Text", order=300)
