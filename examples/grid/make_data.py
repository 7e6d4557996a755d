"""Writes the data of the example: scikit-learn's handwritten digits, dealt out to four regions (`pip install scikit-learn`).

Each region gets every fourth image, 64 pixels from 0 to 16 and the label a line: data that lies where it was made, and is trained
on where it lies. The digits are the test part of the UCI data set "Optical Recognition of Handwritten Digits" (E. Alpaydin,
C. Kaynak, CC BY 4.0).
"""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_digits

HERE = Path(__file__).parent / "digits"
REGIONS = ("eu-central-1", "us-east-1", "us-west-2", "ap-northeast-1")


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    rows = [[*map(int, image), int(label)] for image, label in zip(images, labels, strict=True)]
    for place, region in enumerate(REGIONS):
        file = HERE / region / "digits.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(",".join(map(str, row)) + "\n" for row in rows[place :: len(REGIONS)]))


if __name__ == "__main__":
    main()
