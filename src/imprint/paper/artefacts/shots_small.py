"""Few rows per class, all backbones, 10 to 400 shots."""

from imprint.paper.low_data import LowData

artefact = LowData(title="The same from 10 to 400 shots", where="Figure A.4", order=230, first=10, last=400, each=True)
