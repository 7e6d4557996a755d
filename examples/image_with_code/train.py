"""The least training that an image can hold: it says where it runs, and learns the handwritten digits on the processor."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(images / 16.0, labels, random_state=0)
    accuracy = LogisticRegression(max_iter=500).fit(train_x, train_y).score(test_x, test_y)
    found = {"accuracy": round(float(accuracy), 4), "node": os.environ.get("NODE_RANK", "0")}
    print(json.dumps(found))
    Path(os.environ.get("ARTIFACTS_DIR", "."), "metrics.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
