"""Words of grammar of the bot's languages, which do not tell what a line is about."""

from __future__ import annotations

from functools import cache

from bot.tape.index.terms import tokenize

_GRAMMAR_WORDS = (
    # de
    "wer wen wem was wo wann wie warum wohin woher welche welcher welches welchen der die das den dem des ein eine "
    "einen einem einer ist sind war waren bin hat habe haben hatte wird werden kann mein meine meinen meinem meiner "
    "unser unsere ich du er sie es wir ihr und oder nicht kein keine auf in im am an zu zum zur von vom mit für bei bis "
    "aus nach um noch so viel viele da "
    # fr
    "qui quoi où quand comment combien pourquoi quel quelle quels quelles est est-ce le la les des un une du de au aux à "
    "et ou ne pas plus sont était ai as a avons ont mon ma mes notre nos son sa ses je il elle nous vous ils ce cette "
    "dans pour sur avec sans chez par depuis c d l j s n m qu en "
    # es, pt
    "qué quién quiénes dónde cuándo cómo cuánto cuál cuáles por para el los las unos son era está están hay tiene tengo "
    "mi mis tu su sus yo se me lo al del con sin y o no que más ya muy desde hasta quem onde quando como qual quais os "
    "um uma são foi tem tenho meu minha seu sua não do da dos das na ao em com "
    # it
    "chi che cosa dove quando come quanto perché quale quali gli i uno della dello dei degli delle nel nella sul sulla "
    "con per tra è sono ho ha abbiamo mio mia miei mie suo di si ci "
    # ru, uk
    "кто что где когда как сколько почему зачем куда откуда какой какая какое какие чей и или не в во на с со у к о об "
    "от до из за по для мой моя мое мои наш наша я ты он она мы вы они это есть был была были меня мне ли же хто що де "
    "коли як скільки чому куди який яка яке які чий та або з зі від про мій моє мої ми ви вони це є був була були мені чи "
    # zh
    "什么 什麽 哪里 哪儿 哪个 在哪 是谁 我的 你的 他的 她的 我们 多少 怎么 时候 为什 几点 是什 有什 "
    # ar
    "من ما ماذا أين متى كيف كم لماذا أي هل في على إلى عن مع هو هي هذا هذه لي لا أنا كان كانت"
)


@cache
def grammar_terms() -> frozenset[str]:
    """Return the search's terms of words of grammar; the search leaves out the English ones."""
    return frozenset(tokenize(_GRAMMAR_WORDS))
