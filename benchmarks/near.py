"""Seconds and peak memory of near-duplicates and hubs over many passages.

    python benchmarks/near.py [--passages 100000] [--part 20000] [--only KIND,KIND]

The passages are those of passages.py. Their vectors are made up, because 100,000 real ones would
take a quarter of an hour: 384 numbers each,

    random     in all directions alike
    text       as MiniLM's lie (their variance falls with a power of the direction, in 500 topics),
               every 50th passage nearly another's
    alike      all within a cosine of .99 of each other: 5,000 million pairs reach the threshold
    below      all at a cosine of about .92, hardly below the threshold
    hash       the hashed counts of the passages themselves, 1,024 buckets

Each figure is a fresh process; its peak is what the system says of it (Linux, MacOS). The reference
is NumPy by blocks without a bound, on the first `--part` passages for the duplicates (it must find
the same groups) and for a tenth of the questions for the hubs (its lists must be as near); what it
would take of all processors for the whole is reckoned from that.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from passages import write_source

KINDS = ("random", "text", "alike", "below", "hash")
DIM = 384
BATCH = 20_000
THRESHOLD = 0.95
K = 10

NEAR = f"""
import json, sys, time
from pathlib import Path
began = time.perf_counter()
from ragcli.inspection.duplicates import duplicates
from ragcli.inspection.hubs import hubs
from ragcli.store.index import Index
with Index.open(Path(sys.argv[2])) as index:
    if sys.argv[1] == "duplicates":
        found = duplicates(index, threshold={THRESHOLD})
        told = f"{{found.all_groups:,}} groups, {{found.all_redundant:,}} redundant"
    else:
        found = hubs(index, k={K})
        told = f"{{found.asked:,}} asked, skewness {{found.observed.skewness:.2f}}"
print(json.dumps([time.perf_counter() - began, told]))
"""


def vectors(kind: str, count: int):
    """Float32 (count, DIM)."""
    import numpy as np

    rng = np.random.default_rng(5)
    rows = rng.standard_normal((count, DIM), np.float32)
    if kind == "text":
        scale = (np.arange(1, DIM + 1) ** -0.35).astype(np.float32)
        topics = rng.standard_normal((500, DIM), np.float32)
        rows = (rows + topics[rng.integers(0, 500, count)]) * scale
        near = np.arange(50, count, 50)
        noise = rng.standard_normal((len(near), DIM), np.float32) * scale * np.float32(0.3)
        rows[near] = rows[rng.integers(0, count, len(near))] + noise
    if kind in ("alike", "below"):
        cosine = 0.99 if kind == "alike" else 0.92
        rows *= np.float32(np.sqrt((1 / cosine - 1) / DIM))
        rows[:, 0] += 1
    return rows


def fill(index: Path, kind: str) -> None:
    """Give every passage a vector."""
    from ragcli.encoders.quantising import quantise
    from ragcli.store.catalog import Catalog
    from ragcli.store.lock import write_lock
    from ragcli.store.writer import Writer

    with write_lock(index, 10.0):
        catalog = Catalog.open_write(index)
        writer = Writer(index, catalog)
        pending = writer.pending()
        rows = vectors(kind, len(pending))
        for start in range(0, len(pending), BATCH):
            some = slice(start, start + BATCH)
            writer.add_vectors(pending[some], quantise(rows[some], normalise=True))
            writer.commit()
        while writer.merge_vectors():
            pass
        writer.commit()
        catalog.checkpoint()
        writer.sweep()
        catalog.close()


def make(index: Path, source: Path, *options: str) -> None:
    """An index of `source`."""
    subprocess.run(
        [sys.executable, "-m", "ragcli", "index", str(source), "--index", str(index), "--quiet",
         *options], check=True,
    )  # fmt: skip


def prepare(work: Path, kind: str, passages: int) -> None:
    """The index `work/kind`."""
    source = work / "source"
    if not source.exists():
        source.mkdir()
        write_source(source, work, passages, 0, None)
    if kind == "hash":
        make(work / kind, source, "--encoder", "hash")
        return
    if not (work / "lazy").exists():
        make(work / "lazy", source, "--lazy")
    shutil.copytree(work / "lazy", work / kind)
    fill(work / kind, kind)


def timed(what: str, index: Path) -> tuple[float, float, float, str]:
    """(seconds, seconds of all processors, peak in MB, what it found) of one process."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [sys.executable, "-c", NEAR, what, str(index)], stdout=out, env={**os.environ}
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{what} of {index} ended with {process.returncode}")
        out.seek(0)
        seconds, told = json.load(out)
    unit = 1 if platform.system() == "Darwin" else 1024
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6, told


def plain_duplicates(index: Path, part: int) -> tuple[float, bool]:
    """(seconds for all pairs, reckoned up; whether the groups of the part are the same)."""
    import numpy as np

    from ragcli.inspection.near import Groups, join_near
    from ragcli.store.index import Index
    from ragcli.store.matrix import matrix

    with Index.open(index) as opened:
        _, rows = matrix(opened, normalise=True)
    whole, rows = len(rows), rows[:part]
    began = time.process_time()
    least = np.arange(len(rows))
    for start in range(0, len(rows), 1024):
        reaching = rows[start : start + 1024] @ rows.T >= THRESHOLD
        least[start : start + 1024] = reaching.argmax(axis=1)
    spent = time.process_time() - began
    places, groups = np.arange(len(rows)), Groups(len(rows))
    join_near(
        rows, places, groups, THRESHOLD,
        lambda a, b: (rows[a].astype(float) * rows[b]).sum(axis=1),
    )  # fmt: skip
    plain = Groups(len(rows))
    plain.join(places, least)
    # The first row that a row reaches links it to its group's; what these links leave apart is
    # joined below, so that the two must agree to the last row.
    for start in range(0, len(rows), 1024):
        reaching = rows[start : start + 1024] @ rows.T >= THRESHOLD
        reaching &= plain.labels[start : start + 1024, np.newaxis] != plain.labels
        first, second = np.nonzero(reaching)
        plain.join(first + start, second)
    return spent * (whole / len(rows)) ** 2 / 2, bool((plain.labels == groups.labels).all())


def plain_hubs(index: Path) -> tuple[float, bool]:
    """(seconds for 10,000 questions, reckoned up; whether the lists of a tenth are as near)."""
    import numpy as np

    from ragcli.inspection.nearest import nearest
    from ragcli.store.index import Index
    from ragcli.store.matrix import matrix

    with Index.open(index) as opened:
        _, rows = matrix(opened, normalise=True)
    own = np.arange(0, len(rows), max(1, len(rows) // 1000))[:1000]
    began = time.process_time()
    found = []
    for start in range(0, len(own), 100):
        products = rows[own[start : start + 100]] @ rows.T
        products[np.arange(len(products)), own[start : start + 100]] = -np.inf
        found.append(np.argpartition(-products, K, axis=1)[:, :K])
    spent = time.process_time() - began
    lists = nearest(rows, rows[own], K, own=own).places
    # Products by blocks of another shape may differ in the last digit, and so may what is k-th.
    plain, ours = (
        np.sort(np.einsum("qkd,qd->qk", rows[each], rows[own]), axis=1)
        for each in (np.concatenate(found), lists)
    )
    return spent * min(len(rows), 10_000) / len(own), bool(np.allclose(plain, ours, atol=1e-5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--part", type=int, default=20_000)
    parser.add_argument("--only", default=",".join(KINDS))
    given = parser.parse_args()
    told = ", ".join(f"{name} {version(name)}" for name in ("numpy", "faiss-cpu"))
    print(f"{given.passages:,} passages, {os.cpu_count()} processors")
    print(f"Python {platform.python_version()}, {told}")
    print("\n| vectors | | seconds | of all processors | peak MB | found | plain NumPy | agrees |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for kind in given.only.split(","):
            # Elsewhere, for a process' peak counts what its parent held when it was forked.
            with ProcessPoolExecutor(1, get_context("spawn")) as other:
                other.submit(prepare, work, kind, given.passages).result()
            for what in ("duplicates", "hubs"):
                seconds, worked, peak, found = timed(what, work / kind)
                with ProcessPoolExecutor(1, get_context("spawn")) as other:
                    plain, same = (
                        other.submit(plain_duplicates, work / kind, given.part)
                        if what == "duplicates"
                        else other.submit(plain_hubs, work / kind)
                    ).result()
                print(
                    f"| {kind} | {what} | {seconds:.1f} | {worked:.1f} | {peak:.0f} | {found} "
                    f"| {plain:.0f} | {'yes' if same else 'NO'} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
