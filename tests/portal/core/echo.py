"""A process that answers as one that draws and draws nothing: for tests of the one that asks."""

import json
import sys

from evaluation.figures.drawing_process import answer_lines

if __name__ == "__main__":
    sys.exit(answer_lines(lambda line: json.loads(line)["picture"].encode()))
