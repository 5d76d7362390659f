"""Mailboxes (.mbox): each message is a record, read as a single e-mail is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ragcli.corpus.readers import mail
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_BEGINNING = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\r?\n")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def read(source: Source) -> Iterator[Document]:
    """Yield a document per message; its record is its number from 1.

    A message that cannot be read is recorded as a problem. Raises UnreadableFile (`corrupt`)
    for what is no mailbox.
    """
    data = source.data
    starts = list(_BEGINNING.finditer(data))
    if not starts or data[: starts[0].start()].strip():
        raise UnreadableFile("corrupt", "not a mailbox: no From line at its beginning")
    ends = [found.start() for found in starts[1:]] + [len(data)]
    for number, (found, end) in enumerate(zip(starts, ends, strict=True), 1):
        message = Source(source.path, _QUOTED.sub(rb"\1", data[found.end() : end]))
        try:
            documents = list(mail.read(message))
        except UnreadableFile as error:
            source.problems.append((error.kind, f"message {number}: {error}", None))
            continue
        for document in documents:
            yield replace(document, record=str(number), problems=tuple(message.problems))
