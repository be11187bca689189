"""Few rows per class: how many proxies pay at how many shots."""

from imprint.paper.low_data import LowData

artefact = LowData(title="Proxies per class in the low-data regime", where="Figure 10", order=80, first=1, again=True)
