"""Mailboxes (.mbox): each message is a record, read as a single e-mail is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ragcli.corpus.readers import mail
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document

_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE = (
    rb"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
    rb"(?:,?[ \t]+\d{1,2}[ \t]+%b[ \t]+\d{4}[ \t]+\d{1,2}:\d\d(?::\d\d)?"
    rb"|[ \t]+%b[ \t]+\d{1,2}[ \t]+\d{1,2}:\d\d(?::\d\d)?(?:[ \t]+\S{1,10})?[ \t]+\d{4})"
    rb"(?:[ \t]+(?:[+-]\d{4}|[A-Z]{2,5}|remote from \S+))*[ \t]*"
) % (_MONTH, _MONTH)
# A paragraph may begin with the word; the line that divides messages ends with a date.
_BEGINNING = re.compile(
    rb"(?:\AFrom [^\r\n]*|(?:(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*%b)(?:\r?\n|\Z)" % _DATE
)
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
