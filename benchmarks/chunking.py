"""The size of `auto` chunks against what is found: the curve that the default is a point of.

    python benchmarks/chunking.py SET [SET …] [--sizes 100,120,…] [--encoder minilm]

SETs as in quality.py; each is indexed once for each size and asked in the default mode.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from quality import ask, command, make_index, measure, open_set

SIZES = "100,120,135,150,165,180,220"


def chunks_of(index: Path) -> int:
    """How many chunks the index has."""
    asked = command("query", "chunks", "-k", "1", "--mode", "lexical", "--json", "--index")
    done = subprocess.run([*asked, str(index)], check=False, capture_output=True, text=True)
    return int(json.loads(done.stdout)["index"]["chunks"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--encoder", default="minilm")
    given = parser.parse_args()
    print("| set | chunks of | chunks | |\n|---|---|---|---|")
    for folder in given.sets:
        data = open_set(folder)
        for size in given.sizes.split(","):
            with tempfile.TemporaryDirectory() as work:
                options = ["--encoder", given.encoder, "--chunk", f"auto:{size}"]
                index = make_index(data.source, Path(work), options)
                values = measure(data, ask(data, index, []))
                told = " · ".join(
                    f"{metric} {value:.3f}"
                    for metric, value in zip(data.metrics, values, strict=True)
                )
                print(
                    f"| {folder.name} | auto:{size} | {chunks_of(index):,} | {told} |", flush=True
                )


if __name__ == "__main__":
    main()
