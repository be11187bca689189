"""Draw the image of the first page: `python docs/images/make.py`. TinyNet on scikit-learn's digits, five seeds."""

from pathlib import Path

from imprint.demo import explore
from imprint.demo.page import accuracy_over_k

if __name__ == "__main__":
    figure = accuracy_over_k(explore())
    Path(__file__).with_name("accuracy-over-k.svg").write_bytes(figure)
