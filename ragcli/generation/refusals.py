"""Sentences that say that the context does not tell: known by their wordings, in nine languages.

A list of wordings is never whole. A refusal that it misses is judged as a statement; a statement
that it takes for a refusal is judged too little, so each wording names the context, or the speaker
who cannot answer. A sentence that goes on with "but" is a statement.
"""

from __future__ import annotations

import re

_READ = 2000
"""So much of a sentence is looked at."""

_CONTEXT = (
    r"(?:context|passages?|documents?|documentation|sources?|excerpts?|materials?|texts?"
    r"|information (?:given|provided))"
)
_TELL = (
    r"(?:say|state|mention|specif|contain|provide|hold|include|answer|give|indicate|address"
    r"|describe|discuss|cover|reveal|tell|explain|list|name|show|have|offer|disclose)"
)
_WORDINGS = (
    # English: the context does not say; it says nothing; nothing of it in the context; I cannot.
    rf"\b{_CONTEXT}\b[^.]{{0,60}}?\b(?:do|does|did|is|are) ?(?:not|n['’]t)\b[^.]{{0,30}}?\b{_TELL}",
    rf"\b{_CONTEXT}\b[^.]{{0,60}}?\b(?:doesn|don|didn|isn|aren)['’]t\b[^.]{{0,30}}?\b{_TELL}",
    rf"\b{_CONTEXT}\b[^.]{{0,60}}?\b(?:lacks?|(?:say|contain|hold|give|provide|offer)s?"
    r" no(?:thing)?|ha(?:s|ve) no)\b",
    r"\b(?:not|nothing|nowhere|isn['’]t|aren['’]t|no (?:information|mention|answer|details?))\b"
    rf"[^.]{{0,80}}?\b(?:in|by|from) (?:the |this |these |any )?(?:\w+ )?{_CONTEXT}\b",
    r"\bI (?:do not|don['’]t|can ?not|can['’]t|could not|couldn['’]t|am (?:not able|unable) to)"
    r" (?:know|find|answer|determine|say|tell|see)\b",
    r"\b(?:unable to|cannot be|can['’]t be|could not be) (?:answer|find|found|determine)",
    r"\b(?:not enough|insufficient) (?:information|context|detail)",
    r"\bno (?:information|answer|mention) (?:is |was )?"
    r"(?:given|provided|available|found|about|on)\b",
    # German
    r"\b(?:Kontext|Passagen?|Textstellen?|Dokumente?n?|Quellen?)\b[^.]{0,80}?"
    r"\b(?:nicht|keine?n?|nichts)\b",
    r"\bgeht\b[^.]{0,60}?\bnicht hervor\b",
    # French, Spanish, Portuguese, Italian
    r"\b(?:contexte|passages?|documents?|extraits?)\b[^.]{0,30}?\bn(?:e |['’])[^.]{0,40}?"
    r"\b(?:pas|aucune?|rien)\b",
    r"\b(?:contexto|pasajes?|documentos?|trechos?|passagens)\b[^.]{0,20}?\bn(?:o|ão)\b",
    r"\bno se (?:menciona|indica|especifica)\b",
    r"\b(?:contesto|passaggi|document[io])\b[^.]{0,20}?\bnon\b",
    # Russian, Chinese, Japanese
    r"\b(?:контекст|отрывк|документ)\w*\b[^.]{0,40}?\b(?:не|нет)\b",
    r"(?:上下文|文中|段落|资料|文档|材料)[^。]{0,20}?(?:没有|未|并无|不包含)",
    r"无法(?:回答|确定)",
    r"(?:文脈|文書|コンテキスト|資料)[^。]{0,30}?(?:ません|ない)",
)
_REFUSAL = re.compile("|".join(_WORDINGS), re.IGNORECASE)
_GOES_ON = re.compile(
    r"\b(?:but|however|although|nevertheless|aber|jedoch|mais|cependant|pero|però|mas|но|однако)\b"
    r"|但|しかし",
    re.IGNORECASE,
)


def is_refusal(sentence: str) -> bool:
    """Whether `sentence` says that the context does not tell, and goes on with nothing else."""
    looked_at = sentence[:_READ]
    return bool(_REFUSAL.search(looked_at)) and not _GOES_ON.search(sentence)
