"""Which language a text is in, told by its commonest function words; nothing else.

Only Latin-script languages need telling: other scripts choose their stemmer by themselves
(`terms.SCRIPT_STEMMERS`). The lists are short on purpose: words that are frequent in their
language and, as a set, rare in the others. They are also the stop words dropped from questions.
"""

from __future__ import annotations

import math
import re
from collections import Counter

_WORDS = {
    "english": (
        "a about after all also am an and any are as at be because been before being between"
        " both but by can could did do does doing don doesn during each for from had has have"
        " having he her here him his how i if in into is isn it its just ll me more most my no"
        " not now of off on once only or other our out over own re s same she should so some"
        " such t than that the their them then there these they this those through to too under"
        " until up ve very was we were what when where which while who whom whose why will with"
        " would you your"
    ),
    "german": (
        "aber als am an auch auf aus bei bin bis bist da damit dann das dass dein dem den denn"
        " der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein"
        " eine einem einen einer eines er es euch für gegen habe haben hat hatte hatten hier"
        " hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ist ja jede jedem jeden jeder"
        " kann kein keine können man mehr mein mit muss müssen nach nicht noch nun nur ob oder"
        " ohne sehr sein seine seinem seinen seiner sich sie sind so soll sollte über um und uns"
        " unser unter viele vom von vor wann war waren warum was weil welche welchem welchen"
        " welcher welches wenn wer werden wie wieder will wir wird wo wohin wurde wurden zu zum"
        " zur zwischen"
    ),
    "french": (
        "à au aux avec ce ces cet cette dans de des du elle elles en est et été être eux il ils"
        " je l la le les leur leurs lui mais me même mes mon ne nos notre nous on ont ou où par"
        " pas plus pour qu quand que quel quelle quelles quels qui sa sans se ses si son sont sur"
        " ta te tes toi ton tu un une vos votre vous y d c j n s comment pourquoi combien"
    ),
    "spanish": (
        "a al algo antes como cómo con cual cuál cuáles cuando cuándo de del desde donde dónde"
        " durante el él ella ellas ellos en entre era es esa ese eso esta está están este esto"
        " estos fue fueron ha había han hasta hay la las le les lo los más me mi mucho muy nada"
        " ni no nos o os otra otro para pero por porque que qué quien quién se ser si sí sin"
        " sobre son su sus también tan te tiene todo todos tu un una uno unos y ya yo"
    ),
    "portuguese": (
        "a à ao aos as às até com como da das de dela dele do dos e é ela elas ele eles em entre"
        " era essa esse esta está este eu foi foram há isso isto já lhe mais mas me mesmo meu"
        " muito na não nas nem no nos nós num numa o os ou para pela pelas pelo pelos por porque"
        " qual quais quando quem que são se seja sem ser seu seus só sua suas também te tem têm"
        " tu um uma você vocês onde"
    ),
    "italian": (
        "a ad agli ai al alla alle allo anche che chi ci come con cui da dagli dai dal dalla"
        " dalle dei del della delle dello di dove e è ed era gli ha hanno i il in io la le lei"
        " li lo loro lui ma mi mio ne negli nei nel nella nelle non noi o per perché più qual"
        " quale quali quando quanto quella quelle quello questa queste questi questo se si sia"
        " sono su sua sue sugli sui sul sulla sulle suo suoi tra tu tutti un una uno vi voi"
    ),
    "dutch": (
        "aan al als bij dan dat de der deze die dit doch doen door dus een en er ge geen haar"
        " had heb hebben heeft hem het hier hij hoe hun iets ik in is ja je kan kon kunnen maar"
        " me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op"
        " over te tegen toch toen tot u uit uw van veel voor waar waarom wanneer waren was wat"
        " welke werd wie wij wil worden zal ze zich zij zijn zo zonder zou"
    ),
    "swedish": (
        "alla att av blev bli blir de dem den denna deras dess det detta dig din där då efter ej"
        " eller en er ett från för ha hade han hans har hon hur här i icke inte jag kan kunde man"
        " med mellan men mig min mot mycket ni nu när någon något några och om oss på samma sig"
        " sin sina skulle som så till under upp ut utan vad var varför vi vilka vilken vilket"
        " vid vår än är åt över"
    ),
    "danish": (
        "af alle alt at blev blive bliver da de dem den denne der deres det dette dig din disse"
        " du efter eller en end er et for fra ham han hans har havde hendes her hos hun hvad"
        " hvis hvor hvordan hvorfor i ikke ind jeg jer kan kunne man mange med meget men mig"
        " mod når og også om op os over på sig skal skulle som til ud under var vi ville vil være"
    ),
    "norwegian": (
        "alle at av ble bli blir da de dem den denne der deres det dette deg din disse du eller"
        " en enn er et etter for fra ham han hans har hadde henne her hos hun hva hvis hvor"
        " hvordan hvorfor hvilken i ikke inn jeg kan kunne man mange med mellom men meg mot noe"
        " noen når og også om opp oss over på seg skal skulle som så til ut under var vi ville"
        " vil være vært"
    ),
    "finnish": (
        "ei eivät en ennen että he hän ja jo joka jos jotka kaikki kanssa keitä kuin kuinka kuka"
        " kun kuten me mikä miksi milloin missä mitä mutta myös mukaan ne niiden niin noin nyt"
        " oli olivat olla on ovat se sekä sen siitä sillä sinä siksi tai te tämä tämän vai vain"
        " yli voi"
    ),
    "hungarian": (
        "a az azt azok azonban be csak de egy egyik ehhez el előtt én és ez ezek ezt fel ha hanem"
        " hogy hol hogyan is itt ki kell le legyen lehet lenne lett ma már meg mely melyik mert"
        " mi miért mikor minden mint most nagyon nem nincs olyan ők össze őket pedig s sem sok"
        " szerint te után utolsó vagy van vannak volt voltak"
    ),
    "romanian": (
        "a acea aceasta această aceste acest acestea aceștia ai al ale am are așa asupra au ca că"
        " care ce cel cele cine cu cum cât când da dar de deci despre din după ea ei el ele este"
        " eu fi fie fost iar în între la le lor lui mai mult ne nici nu o ori pe pentru prin sau"
        " să se și sunt un una unde unei unor unui"
    ),
    "turkish": (
        "ama ancak bana bazı belki ben beni benim bir biz bu buna bunu bunun çok çünkü da daha de"
        " değil diye en gibi hangi hem hep her için ile ise kadar kaç kim mi mu mı ne neden"
        " nasıl nerede o olan olarak oldu olduğu ona onu onun sen sonra şey şu tarafından tüm"
        " üzere var ve veya ya yok zaman"
    ),
    "catalan": (
        "a al als amb aquest aquesta aquests com d de del dels des dins el ella elles ells els en"
        " ens entre era és està ha han hi i jo l la les li més molt només no o on per perquè però"
        " pel pels quan que què qui quin quina s se sense ser seu seva si sobre són també un una"
        " uns va van vostre"
    ),
    "indonesian": (
        "ada adalah agar akan aku anda antara apa apakah atau bagaimana bagi bahwa banyak baru"
        " beberapa bisa dalam dan dapat dari dengan di dia hanya harus ia ini itu jika juga kami"
        " kapan karena ke kepada kita lebih maka mana mengapa mereka oleh pada para saat saja"
        " sangat saya sebagai sebuah secara sehingga seperti siapa sudah tahun telah tentang"
        " tersebut tetapi tidak untuk yaitu yang"
    ),
}

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _WORDS.items()
}
"""Snowball's name of each language, and its function words in lower case."""

DEFAULT = "english"
_SAMPLE = 1000
_WORD = re.compile(r"[^\W\d_]+")


_EVEN = math.lcm(*range(1, len(FUNCTION_WORDS) + 1))
"""Divides evenly among any number of languages: whole numbers add up the same in any order."""


def _matches(text: str) -> tuple[int, dict[str, float]]:
    """How many words were looked at, and per language how much function words weigh.

    A word that several languages share counts for each of them in equal parts, so that the
    words of one language alone decide.
    """
    words = _WORD.findall(text.lower())
    counts = Counter(words)
    scores: dict[str, int] = {}
    for word in _OWNERS.keys() & counts.keys():
        languages = _OWNERS[word]
        for language in languages:
            scores[language] = scores.get(language, 0) + counts[word] * (_EVEN // len(languages))
    return len(words), {language: score / _EVEN for language, score in scores.items()}


def _owners() -> dict[str, list[str]]:
    by_word: dict[str, list[str]] = {}
    for language, words in FUNCTION_WORDS.items():
        for word in words:
            by_word.setdefault(word, []).append(language)
    return by_word


_OWNERS = _owners()


def detect(text: str) -> str | None:
    """The Latin-script language of `text`, or None where its function words do not tell.

    Looks at no more than the first and the middle `_SAMPLE` characters. It wants function
    words to weigh at least a twentieth of all words and half again as much as the runner-up.
    """
    if len(text) > 2 * _SAMPLE:
        middle = len(text) // 2
        text = f"{text[:_SAMPLE]} {text[middle : middle + _SAMPLE]}"
    seen, scores = _matches(text)
    if not scores:
        return None
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    first, weight = ranked[0]
    second = ranked[1][1] if len(ranked) > 1 else 0.0
    return first if weight >= 0.05 * seen and weight > 1.5 * second else None
