"""The engines that `lexical` measures: each builds, opens, answers, adds and deletes.

Each stores the passages and gives back the ids of the best ten, having read their text. Imports
are inside the methods: a fresh process pays for its own engine only.
"""

from __future__ import annotations

import time

K = 10
K1, B = 1.2, 0.75


class Ragcli:
    """What `ragcli index` and `ragcli query` do, without vectors."""

    def build(self, source: str, index: str) -> None:
        """Index the folder."""
        from pathlib import Path

        from ragcli.indexing import index_folder

        index_folder(Path(index), [Path(source)], {"encoder": "none"})

    def open(self, index: str) -> None:
        """Open for questions."""
        from pathlib import Path

        from ragcli.records import SearchRequest
        from ragcli.retrieval.retriever import Retriever
        from ragcli.store.index import Index

        self._request = SearchRequest
        self._retriever = Retriever(Index.open(Path(index)))

    def search(self, question: str, words: str) -> list[str]:
        """The ids of the best passages, best first."""
        found = self._retriever.search(self._request(question, K, mode="lexical"))
        return [hit.record or "" for hit in found.hits]

    def add(self, source: str, index: str, file: str) -> None:
        """Put `file` in the folder and index again."""
        import shutil
        from pathlib import Path

        from ragcli.indexing import index_folder

        shutil.copy(file, source)
        index_folder(Path(index))

    def delete(self, source: str, index: str, file: str) -> None:
        """Take the file of that name out of the folder and index again."""
        from pathlib import Path

        from ragcli.indexing import index_folder

        (Path(source) / Path(file).name).unlink()
        index_folder(Path(index))


class Postings:
    """Only the postings of ragcli: terms, counting, merging, writing; no catalogue, one process."""

    def build(self, source: str, index: str) -> None:
        """Analyse in the slices that `ragcli index` uses and write one segment."""
        from pathlib import Path

        import numpy as np
        from passages import read_source

        from ragcli.indexing.analysis import SLICE
        from ragcli.store.lexical import PackedNames, combine
        from ragcli.store.segments import write_segment
        from ragcli.store.terms import Analyzer

        analyzer, parts, rows = Analyzer(), [], 0
        targets = []
        texts: list[str] = []
        size = 0

        def analyse() -> None:
            parts.append(analyzer.postings(texts, ["english"] * len(texts)))
            targets.append(np.arange(rows - len(texts), rows))

        for _, text in read_source(source):
            texts.append(text)
            rows += 1
            size += len(text)
            if size >= SLICE:
                analyse()
                texts, size = [], 0
        analyse()
        postings = combine(parts, targets, rows)
        names = PackedNames.pack(postings.names)
        arrays = {
            "names": names.blob,
            "name_ends": names.offsets,
            "starts": postings.starts,
            "rows": postings.rows,
            "counts": postings.counts,
            "lengths": postings.lengths,
        }
        Path(index).mkdir()
        write_segment(Path(index), "p", arrays)


class Bm25s:
    """bm25s, English stop words and stemmer, opened by memory map; it cannot add or delete."""

    def build(self, source: str, index: str) -> None:
        """Index every passage."""
        import bm25s
        from passages import read_source

        corpus = [{"id": name, "text": text} for name, text in read_source(source)]
        engine = bm25s.BM25(method="lucene", k1=K1, b=B)
        engine.index(self._tokens([item["text"] for item in corpus]), show_progress=False)
        engine.save(index, corpus=corpus)

    def open(self, index: str) -> None:
        """Open for questions."""
        import bm25s

        self._engine = bm25s.BM25.load(index, mmap=True, load_corpus=True)

    def search(self, question: str, words: str) -> list[str]:
        """The ids of the best passages, best first."""
        hits, _ = self._engine.retrieve(self._tokens([question]), k=K, show_progress=False)
        return [hit["id"] for hit in hits[0]]

    def _tokens(self, texts: list[str]):
        import bm25s
        import Stemmer

        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)


class Fts5:
    """SQLite FTS5, Porter stemmer, stop words of the question dropped."""

    def build(self, source: str, index: str) -> None:
        """Index every passage in one transaction."""
        import sqlite3

        from passages import read_source

        with sqlite3.connect(index) as connection:
            connection.execute(
                "CREATE VIRTUAL TABLE passages USING fts5 (body, tokenize = 'porter unicode61')"
            )
            connection.executemany(
                "INSERT INTO passages (rowid, body) VALUES (?, ?)", read_source(source)
            )

    def open(self, index: str) -> None:
        """Open for questions."""
        import sqlite3

        self._connection = sqlite3.connect(index)

    def search(self, question: str, words: str) -> list[str]:
        """The ids of the best passages, best first."""
        wanted = " OR ".join(f'"{word}"' for word in words.split())
        found = self._connection.execute(
            "SELECT rowid, body FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?",
            (wanted, K),
        )
        return [str(number) for number, _ in found]

    def add(self, source: str, index: str, file: str) -> None:
        """Insert the passages of `file`."""
        from passages import read_file

        self.open(index)
        with self._connection as connection:
            connection.executemany(
                "INSERT INTO passages (rowid, body) VALUES (?, ?)", read_file(file)
            )

    def delete(self, source: str, index: str, file: str) -> None:
        """Delete the passages of `file`."""
        from passages import read_file

        self.open(index)
        with self._connection as connection:
            connection.executemany(
                "DELETE FROM passages WHERE rowid = ?", [(name,) for name, _ in read_file(file)]
            )


class Tantivy:
    """tantivy with its English stemmer, stop words of the question dropped."""

    def build(self, source: str, index: str) -> None:
        """Index every passage, with as many threads as tantivy likes."""
        from pathlib import Path

        import tantivy
        from passages import read_source

        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("body", stored=True, tokenizer_name="en_stem")
        Path(index).mkdir()
        self._index = tantivy.Index(builder.build(), path=index)
        self._write(read_source(source))

    def open(self, index: str) -> None:
        """Open for questions."""
        import tantivy

        self._index = tantivy.Index.open(index)
        self._searcher = self._index.searcher()

    def search(self, question: str, words: str) -> list[str]:
        """The ids of the best passages, best first."""
        query = self._index.parse_query(words, ["body"])
        documents = [self._searcher.doc(place) for _, place in self._searcher.search(query, K).hits]
        return [document["id"][0] for document in documents if document["body"]]

    def add(self, source: str, index: str, file: str) -> None:
        """Add the passages of `file`."""
        from passages import read_file

        self.open(index)
        self._write(read_file(file))

    def delete(self, source: str, index: str, file: str) -> None:
        """Delete the passages of `file`."""
        from passages import read_file

        self.open(index)
        writer = self._index.writer()
        for name, _ in read_file(file):
            writer.delete_documents("id", name)
        writer.commit()
        writer.wait_merging_threads()

    def _write(self, passages) -> None:
        import tantivy

        writer = self._index.writer()
        for name, text in passages:
            writer.add_document(tantivy.Document(id=name, body=text))
        writer.commit()
        writer.wait_merging_threads()


ENGINES = {
    "ragcli": Ragcli,
    "bm25s": Bm25s,
    "SQLite FTS5": Fts5,
    "tantivy": Tantivy,
    "postings": Postings,
}


def step(name: str, verb: str, *arguments: str) -> None:
    """One step of one engine, in this process; prints what it measured as JSON."""
    engine = ENGINES[name]()
    if verb == "fresh":
        index, question, words = arguments
        engine.open(index)
        print(len(engine.search(question, words)))
        return
    import json

    if verb == "warm":
        index, questions = arguments
        engine.open(index)
        with open(questions, encoding="utf-8") as file:
            asked = json.load(file)
        for question in asked[:20]:
            engine.search(*question)
        print(json.dumps([_timed(engine.search, *question) for question in asked]))
    else:
        print(json.dumps(_timed(getattr(engine, verb), *arguments)[0]))


def _timed(call, *arguments):
    """(seconds, what `call` returned)."""
    began = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - began, result
