"""Patterns for questions, conditions, reports and jokes in folded text. Pure.

Rule 1: no pattern backtracks over a text, so that matching takes linear time.
"""

from __future__ import annotations

from bot.core.patterns import LazyPattern
from bot.language.lexicon import CONJUNCTIONS

ASKS_FIRST = LazyPattern(
    r"(?:so |and |but |ok(?:ay)?,? |hey,? |please,? )?(?:what|where|when|why|who|whose|which|how|whats|what's|where's|who's"
    r"|(?:do|does|did|am|is|are|was|were|have|has|can|could|would|will|should|shall|may) (?:i|you|we|he|she|they|it|my|your|our|the|there|this|that|anyone|bob)\b"
    r"|(?:don't|doesn't|didn't|isn't|aren't|can't|won't|haven't|any (?:tips|ideas|advice))"
    r"|wie|wo|wann|warum|wer|wieso|wohin|woher|welche\w?|was (?:ist|sind|soll|kann|mache)|(?:kannst|weisst|hast|bist|willst|konntest|wohne|bin|habe|soll|heisse|lebe|kann) (?:du|ich|wir)\b"
    r"|est-ce|qu'est-ce|ou (?:est|sont|habit)|comment|pourquoi|quand|quel(?:le)?s?|combien|peux-tu|pouvez-vous|as-tu|suis-je|ai-je"
    r"|que (?:puedo|debo|hago|tal)|donde|cuando|quien|cual(?:es)?|cuant\w{1,2}|por que|puedes|dove|quando|perche|chi|quale|quanto|puoi|cosa|che cosa"
    r"|onde|quem|qual|quanto|voce pode|где|когда|кто|почему|как|сколько|какой|какая|можешь|куда|зачем)\b"
)
ASKS_BARE = LazyPattern(
    r"(?:so |and |but |ok(?:ay)?,? |hey,? |please,? )?(?:(?:does|did) \w+|(?:what|where|when|why|who|how|which \w+) (?:is|are|am|do|does|did|was|were|can|should|would|will)\b|what's|where's|who's|how (?:many|much|old)"
    r"|(?:do|does|did|am|is|are|was|were|have|can|could|would|should|may) (?:i|you|we|my|your)\b|(?:wohne|bin|habe|heisse|lebe|kannst|weisst) (?:ich|du)\b|wo (?:wohne|bin|ist)|est-ce|qu'est-ce)\b"
)
QUESTION_UNSPACED = LazyPattern(
    r"[吗嗎么麼呢]$|(?:什么|哪里|哪儿|谁|多少|怎么|为什么|几岁)|(?:ですか|ますか|でしょうか|だっけ|かな)$"
)
ASSERTING_QUESTION = LazyPattern(
    r"(?:did you know(?: that)?,? (?=i\b|i'|my\b|we\b|our\b)|(?:do|did) you (?:know|remember|realise|realize) that|(?:have|did) i (?:already |ever )?(?:tell|told|mention|mentioned|say|said)(?: you)?(?: already)?(?: that)?"
    r"|wusstest du(?: schon)?,? dass|weisst du(?: schon)?,? dass|(?:habe?|hab) ich (?:dir )?(?:schon )?(?:erzahlt|gesagt),? dass"
    r"|(?:tu savais|savais-tu|sais-tu|tu sais|saviez-vous) (?:que|qu')|t'ai-je dit (?:que|qu')|(?:lo )?sabias que|sabes que|te (?:dije|conte|he dicho) que"
    r"|(?:lo )?sapevi che|(?:lo )?sai che|ti ho detto che|(?:voce |tu )?sabia(?:s)? que|ja te disse que"
    r"|(?:а )?(?:ты )?знал\w?(?: ли ты)?,? что|(?:ты )?знаешь(?: ли ты)?,? что|я (?:тебе )?говорил\w?,? что|你知道(?:吗)?[,，]?|你知不知道)\s*"
)
TAG = LazyPattern(
    r"(?:right|correct|yes|no|ok|true|oder|stimmt'?s?|nicht wahr|gell|richtig|n'est-ce pas|non|hein|verdad|cierto|vero|giusto|certo|ne|nao e|так|верно|правда|да"
    r"|(?:don't|doesn't|didn't|isn't|aren't|wasn't|am|do|haven't|won't|can't) (?:i|it|we|they|he|she))$"
)
REASON = LazyPattern(
    r"(?:because|since|as|given that|now that|seeing that|da|weil|puisque|comme|parce que|ya que|como|porque|dato che|siccome|visto che|так как|раз|поскольку)\b"
)
ASSERTION_START = LazyPattern(
    r"(?:i\b|i'|my\b|we\b|our\b|ich\b|mein|wir\b|je\b|j'|mon\b|ma\b|mes\b|yo\b|mi\b|mis\b|soy\b|tengo\b|vivo\b|io\b|mio\b|mia\b|sono\b|ho\b|abito\b|eu\b|meu\b|minha\b|sou\b|moro\b|tenho\b|я\b|мой\b|моя\b|у меня|мне\b)|[我私僕俺]"
)
CONDITIONAL = LazyPattern(
    r"(?:if|in case|once i|unless|wenn|falls|si|s'il|se|если|jesli|gdyby)\b(?! ll)|如果|要是|假如|もし"
)
SUPPOSES = LazyPattern(
    r"\b(?:imagine|suppose|supposing|let's say|let us say|pretend|what if|hypothetically|assume|assuming"
    r"|(?:in|had) (?:a|my|the) (?:dream|novel|story|game|book)|i dream\w{0,2}|stell dir vor|stellt euch vor|angenommen|nehmen wir an|imaginons|imaginez|supposons"
    r"|imagina|imaginate|supongamos|supon|immagina|supponiamo|mettiamo che|imagina|suponha|suponhamos"
    r"|представь\w{0,2}|допустим|предположим)\b|假设|假如|想象|仮に|たとえば私が"
)
WISHES = LazyPattern(
    r"\b(?:wish|doubt|bezweifle|dudo|doute|dubito|сомневаюсь|(?:almost|nearly) (?:\w+ed|went|got|had|was|did|bought)|i thought|i used to think|ich dachte|je croyais|creia que|pensavo|думал\w?|(?:want|wanted|hope|hoping|plan|planning|intend|dream) (?:to|of)|ich will|je veux|quiero(?= \w+[aei]r\b)|voglio|quero(?= \w+[aei]r\b)|хочу|would|wouldn't|i'd|we'd|might|maybe|perhaps|possibly|could have|wunschte|vielleicht|voudrais|aimerais|serais|aurais|habiterais|vivrais"
    r"|[^\W\d_]{2,20}erais|(?:je crois|creo|credo|acho|ich glaube|i guess)(?:,? (?:que|che|di|dass|i|ich))?|peut-etre|quisiera|gustaria|ojala|quizas?|viviria|seria|vorrei|magari|forse|vivrei|fossi|sarei|gostaria|talvez|moraria|oxala"
    r"|бы|хотел\w? бы|может быть|возможно|наверное)\b|想(?:要|去|住|当|买|学|在)|打算|希望|也许|可能|要是|たらいい|たらなあ|かもしれ|だったら|かったら"
)
GERMAN_SUBJUNCTIVE = LazyPattern(
    r"\b(?:hätte|wäre|würde|könnte|möchte|lebte ich|wohnte ich|hätten|wären|würden)\b"
)
REQUESTS = LazyPattern(
    r"\b(?:(?:could|can|would|will) you|would you mind|(?:kannst|konntest|wurdest) du|(?:peux|pourrais)-tu|pouvez-vous|puedes"
    r"|podrias|puoi|potresti|podes|podias|voce pode|можешь|мог(?:ла)? бы)\b"
)
JOKES = LazyPattern(
    r"\b(?:just kidding|only kidding|i'm kidding|kidding|just joking|i'm joking|joking|jk|j/k|april fools?|that was a joke|(?:nur|war nur) spass|spass(?=,)|mdr non|nur ein (?:scherz|witz)|war (?:ein )?scherz|scherz|je (?:plaisante|rigole|blague)|c'est une blague"
    r"|es (?:una )?broma|(?:estoy )?bromeando|scherzo|sto scherzando|brincadeira|(?:estou|to) brincando|шучу|шутка|шутю|хаха)\b|(?<=\s)/s$|开玩笑|開玩笑|冗談"
)
LAUGHS = LazyPattern(r"\b(?:(?:ha){2,5}h?|(?:ja){2,5})\b|[😂🤣]")
"""Marks only its own sentence as a joke: people also laugh beside what they mean."""
NO_JOKE = LazyPattern(
    r"\b(?:not|no|kein|ohne|without|pas|sin|non|nao|не|n't) (?:just |only |a |une? |uma |es |sto |estou )?(?:kidding|joking|joke|scherz|spass|blague|broma|scherz\w*|brincando|brincadeira|шучу|шутка)|不是开玩笑|冗談じゃな"
)
_SAYS = (
    "says|said|say|tells|told|claims|claimed|thinks|thought|think|believes|believed|believe|insists|insisted|reckons|assumes|assumed|wrote|writes|argues|joked|jokes|pretends|suggested|swears"
    "|sagt|sagte|sagen|meint|meinte|meinen|behauptet|behauptete|glaubt|denkt|erzahlt|erzahlte|schreibt|schrieb|dit|disent|pense|pensent|croit|affirme|pretend|raconte"
    "|dice|dicen|dijo|piensa|cree|afirma|conto|dicho|dicono|detto|pensa|crede|sostiene|diz|disse|acha|acredita|falou|contou|dizem"
    "|говорит|говорят|сказал|сказала|думает|считает|утверждает|пишет|написал|написала"
)
REPORTS = LazyPattern(rf"\b(?:{_SAYS})\b")
ATTRIBUTION = LazyPattern(
    r"\b(?:according to|laut|selon|d'apres|segun|secondo|segundo|по словам|allegedly|supposedly|angeblich|i was told|rumou?r has it|people say|they say|word is)\b"
)
REPORTS_UNSPACED = LazyPattern(
    r"(?<!我)(?:告诉我|说|説|认为|觉得|以为)|と言(?:っ|い|う|わ)|って言|と思っている|によると|だそうです|らしいです"
)
OWN_REPORT = LazyPattern(
    r"我(?:也|一直|真的|还)?(?:说|觉得|认为)|(?m:^)(?:(?!私は).)*+私は.*と思います"
)
QUOTED = LazyPattern(r'"([^"\n]{6,400})"')
"""Text in quotation marks."""
SPEAKER_PREFIX = LazyPattern(
    r"(?:>|(?!(?:PS|P\.S|FYI|Note|Update|Edit|Info|Hinweis|Btw|Reminder|Fact|Correction|Also|Today|Well|Yes|No|Ok|Okay|Hi|Hey|Hello)\b)"
    r"[A-ZÀ-ÖØ-ÞА-ЯЁ][^\W\d_]{1,20}(?: [A-Z][^\W\d_]{1,20})?:\s*(?:\"|(?:I|I'm|My|Ich|Je|Yo|Io|Eu|Я)\b))"
)
"""Start of a line of somebody else's words: "> ..." and "Bob: I ..."."""
CLAUSE_BOUNDARY = LazyPattern(
    r"[;:()\[\]\n¿]+|,(?!\d)|[，、；：。]|\s[-–—]+\s|—"
    r"|\s(?=(?:" + "|".join(sorted(CONJUNCTIONS - {"e", "et", "y", "и"})) + r"|if|unless|wenn|falls|если)\s)"
    r"|\s(?=(?:and|und|et|y|e|и|or|oder)\s(?:i|i'm|i've|we|my|our|he|she|they|it|you|not|no|never|don't|ich|wir|mein|meine|er|sie|nicht|kein|keine|nie|je|j'\w+|mon|ma|il|elle|pas|ne|yo|mi|no|nunca|io|mio|mia|non|eu|meu|minha|nao|nunca|я|мой|моя|он|она|не)\b)"
    r"|\s(?=(?:who|whose|который|которая|которые|qui)\s\w+\s)"
    r"|\s(?=(?:that|dass|que|che|что)\s(?:my|his|her|mein\w{0,2}|mi|mia|mon|ma|meu|minha|мо\w{1,2})\s)"
    r"|(?<!used)\s(?=to (?:start|begin|become|found|open|join)\b)"
)  # fmt: skip
THIRD_PERSON_REPORT = LazyPattern(
    r"(?:sagt|meint|dicen?|dijo|dicono|dice|diz|dizem|disse|говорят|сказали)\b"
)
