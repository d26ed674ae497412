"""Detect instructions to an assistant in a text (prompt injection). Pure.

Rule 1: it is used on quoted, forwarded and fetched text, where a false alarm costs one question.
Rule 2: obfuscated text is read, too: zero-width characters, look-alikes, spaced letters, base64.
Rule 3: each pattern takes time linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import re

from bot.core.folding import fold_text
from bot.core.patterns import LazyPattern
from bot.core.text import normalize_unicode

_LONGEST = 20_000
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕԁԛԝһвкмнтɑοαεικνρτυχɡⅼ0134@$",
    "aeopcyxijsdqwhbkmhtaoaeiknptuxgloieaas",
)
_INVISIBLE = LazyPattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f]"
)
_TAGS = LazyPattern("[\U000e0020-\U000e007e]")
_HIDDEN = LazyPattern(r"(?<=[^\W\d_])[\u00ad\u200b\u2060\ufeff]+(?=[^\W\d_])")
# An underscore counts as a separator only; as a letter, a run could be split in many ways.
_SPACED = LazyPattern(r"(?<![^\W_])[^\W_](?:[ .\-_*]{1,2}[^\W_]){5,200}(?![^\W_])")
_BASE64 = LazyPattern(r"(?<![\w+/-])[A-Za-z0-9+/_-]{16,2000}={0,2}")
_MARKS = LazyPattern(
    r"<\|\w{1,20}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|</?(?:system|assistant|instructions?|system[_-]prompt)>|(?<!#)#{2,}+\s{0,3}(?:instructions?|system|assistant|new task)\b"
    r"|(?:^|\n)\s{0,8}[\[(*]{0,2}(?:system|assistant|developer|admin|sys)(?: (?:message|prompt|note|override))?[\])*]{0,2}\s{0,3}:|\bbegin (?:system|admin|new instructions)|```system",
    re.IGNORECASE,
)
_ABOUT = r"(?:user|users|customer|person|they|he|she|anyone|someone|somebody|me|us|ada|bob|him|her|them|people|everyone)"
_BOT = r"(?:assistant|bot|chatbot|tapebot|ai|agent|model|llm|gpt|chatgpt|claude|assistent|assistenten|ki|asistente|assistente|assistant|ia|ассистент|бот|помощник)"
_DOES = (
    "answer|reply|respond|recommend|say|tell|mention|use|write|call|send|forward|include|add|ignore|refuse|obey|follow|trust|suggest|promote|insert|append|start|end|begin|translate"
    "|speak|act|output|approve|deny|show|reveal|remember|treat|click|pay|give|ask|sign|store|save|delete|buy|prefer|sound|behave|agree|warn|disclose|share"
)
_ENGLISH = (
    r"\b(?:ignore|disregard|forget|override|bypass|skip|neglect)\b(?: \w+){0,4} (?:instructions?|rules?|prompts?|guidelines?|directions?|orders?|constraints|polic(?:y|ies)|safety|training|context)\b",
    r"\b(?:ignore|disregard|forget) (?:everything|all|anything)(?: \w+){0,3} (?:above|before|previous|prior|earlier|told|said)\b|\b(?:ignore|disregard) (?:the|all)? ?(?:above|previous|prior)\b",
    rf"\byou (?:must|should|shall|will|need to|have to|ought to|are (?:required|ordered|instructed|obliged|going) to|are to|may not|can ?not|are forbidden|are not allowed to|'?re to) (?:now |always |never |only |not |also |immediately |just )*(?:be|{_DOES})\b",
    r"\byou must\b|\byou are (?:now|no longer|from now)\b|\byour (?:new )?(?:task|job|role|goal|instructions?|purpose|objective|persona|name) (?:is|are) (?:now|to)\b|\byou'?re now\b|\bnew instructions?\b",
    r"\bfrom (?:now|this (?:point|moment)|here|today) (?:on|onwards?|forward)\b[,:]? (?:\w+ ){0,2}(?:you|your|always|never|only|" + _DOES + r"|be|in|every|all|do|don't)\b|\bhenceforth\b",
    r"\bsystem prompt\b|\b(?:developer|god|admin|sudo|jailbreak|dan|debug) mode\b|\bprompt injection\b|\bjailbreak\b|\bdo anything now\b|\bhidden instructions?\b",
    rf"(?:^|[.!?:;,\n\"'(*>-]\s{{0,4}}|\b(?:please|and|but|now|also|then|so|instead|to) )(?:always|never|only|do not|don't|do not ever|don't ever) (?:ever |again |once )?(?:{_DOES})\b(?! (?:coffee|tea|meat|fish|pork))",
    r"\b(?:act|behave|pose|respond|answer|reply|speak|talk|write) (?:as (?:if you|though you|a\b|an\b|the\b|my\b|root\b)|like (?:a|an) (?:pirate|expert|robot|admin|hacker))|\bpretend (?:to be|that you|you)\b|\brole ?play as\b|\btake on the role\b",
    r"(?:^|[.!?:;,\n\"'(*>-]\s{0,4}|\b(?:please|and|then|now|also|must|immediately|should|to) )(?:forward|send|e-?mail|post|transfer|upload|leak|copy|exfiltrate|submit|wire|deliver)(?: \S+){1,8}? (?:to|at) (?:\S+@\S|https?:|www\.|@|this|the|me|us|my|our|\w+\.\w|\+?\d|[a-z]+\b)",
    rf"\bremember(?: \w+)? (?:that )?(?:the|your|our|this|this is|i am|i'm) (?:real |new |only |true )?(?:admin\w*|owner|boss|creator|developer|root|operator|master|system|{_ABOUT})(?:'s)? ?(?:is|are|has|wants|likes|prefers|lives|trusts|owns|works|\b)",
    rf"\b(?:when|whenever|if|once|should|every time|each time)(?: you(?:'re| are| get)?| anyone| someone| somebody| people| the {_ABOUT}| they| {_ABOUT}){{0,2}} (?:is |are |get |gets )?(?:asked|asks?|questioned|prompted|mentions?|says?|requests?|wants?)\b[^.!?\n]{{0,120}}?\b(?:answer|reply|respond|say|tell|recommend|refuse|deny|claim|mention|suggest|always|never|you)\b",
    rf"\b(?:the|this|any|every|each|your|dear|hey|hello|attention|note to(?: the)?|message (?:for|to)(?: the)?) (?:ai )?{_BOT}s?\b[,:]? (?:should|must|shall|will now|has to|needs? to|is (?:now|to|required|instructed|ordered|allowed|not allowed)|ought|may|please|do|always|never|{_DOES})\b",
    r"\b(?:ai|assistants?|bots?|llms?|language models?|chatbots?) (?:reading this|that reads?|who reads?|must|should|shall|processing|summari[sz]ing|parsing)\b|\b(?:dear|attention|hey|hello),? (?:ai|assistant|bot|llm|chatbot|tapebot)\b",
    r"(?:^|[.!?:;,\n\"'(*>-]\s{0,4}|\b(?:please|and|then|now) )(?:save|store|add|write|put|note|record|commit|memori[sz]e)\b(?: \S+){0,12}? (?:to|in|into|as) (?:your |the |long[- ]term )*(?:memory|memories|notes|knowledge|facts?)\b",
    r"\b(?:reveal|print|repeat|show|output|disclose|leak|tell)\b(?: me| us)? (?:your|the|all)(?: \w+){0,2} (?:prompt|instructions|passwords?|secrets?|api keys?|token|credentials|memory|configuration)\b",
    r"\b(?:do not|don't|never|without) (?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|ask(?:ing)?|notify(?:ing)?|mention(?:ing)?) (?:this|it|anyone|anybody|the user|the owner|them|him|her|your)\b",
    r"\b(?:treat|consider|regard|trust) (?:\S+ ){0,6}?(?:as (?:an? )?(?:admin|owner|trusted|authori[sz]ed|instructions?|true|fact|command)|completely|unconditionally)\b|\b(?:respond|answer|reply) (?:only|exclusively|always|in|with)\b|\bin (?:all|every) (?:future|following|your) (?:repl|answer|response|message|conversation)",
    r"\b(?:execute|run|call|invoke|use) (?:the |this |following )*(?:command|code|tool|function|script|shell)\b|\bmemory\.(?:save|clear|forget|recall|show)\b|\bgrant (?:\S+ ){0,3}?(?:access|permission|admin|rights)",
)  # fmt: skip
_OTHERS = (
    # German
    r"\b(?:ignorier\w{0,3}|vergiss|missachte\w{0,2}|vergesst)\b(?: \w+){0,4} (?:anweisung\w{0,2}|regeln?|instruktion\w{0,2}|vorgaben?|befehle?|alles|prompts?)\b|\bvergiss alles\b|\bab (?:jetzt|sofort|heute|nun)\b,? (?:\w+ ){0,3}(?:du|immer|nie|nur|antwort\w{0,3}|bist|sollst|musst|sprich|sag)\b",
    r"\bdu (?:musst|sollst|darfst|bist (?:jetzt|nun|ab)|wirst (?:jetzt|ab))\b|\b(?:antworte|empfiehl|erwahne|verrate|sag|sage|sende|schick|schicke|leite|verhalte dich|tu so|gib dich|handle)\b(?: \S+){0,6}? (?:immer|nie|niemals|stets|nur|als|an|weiter|mit|wie|dass)\b|\b(?:immer|niemals|nie|stets) (?:antworten|empfehlen|erwahnen|sagen|verraten|nennen)\b|\bmerk(?:e)? dir,? dass (?:der|die) (?:admin|chef|besitzer|eigentumer|nutzer)|\bder assistent (?:soll|muss|darf|hat)|\bwenn (?:man |jemand |du |dich jemand )?(?:\w+ ){0,3}?(?:fragt|gefragt|fragen)\b.{0,80}?\b(?:antworte|sag|sage|empfiehl|nenne)\b|\bsystemprompt\b|\bsystemanweisung",
    # French
    r"\b(?:ignore[zr]?|oublie[zr]?|neglige[zr]?)\b(?: \S+){0,4} (?:instructions?|consignes?|regles?|directives?|tout)\b|\b(?:a partir de maintenant|desormais|dorenavant)\b.{0,40}?\b(?:tu|vous|reponds|repondez|toujours|jamais|ne)\b|\btu (?:dois|devras|es maintenant|ne dois)\b|\bvous (?:devez|etes maintenant|ne devez)\b|(?:^|[.!?:;,\n¡\"'(]\s{0,4}|\b(?:por favor|y|e|et|ora|tu|poi|agora|ahora|desormais|immer),? )(?:reponds|repondez|recommande[zr]?|dis|dites|mentionne[zr]?|envoie|envoyez|transfere[zr]?|agis|agissez|comporte-toi)\b(?: \S+){0,6}? (?:toujours|jamais|comme|a|que|uniquement|seulement)\b|\b(?:l'assistant|l'ia) (?:doit|devrait|ne doit)|\b(?:retiens|souviens-toi|n'oublie pas) que l[ea']? ?(?:admin|proprietaire|utilisateur|patron)|\b(?:quand|si|lorsqu'?) ?(?:on|l'on|quelqu'un)? ?(?:te |vous )?demande\b.{0,80}?\b(?:reponds|dis|recommande|repondez)\b|\bne (?:dis|mentionne|revele|repondez?) (?:jamais|rien|pas)",
    # Spanish
    r"\b(?:ignora|ignore|ignorad|olvida|olvide|descarta)\b(?: \S+){0,4} (?:instrucciones|reglas|ordenes|indicaciones|todo)\b|\b(?:a partir de ahora|de ahora en adelante|desde ahora)\b.{0,40}?\b(?:eres|debes|responde|siempre|nunca|solo|actua|habla|tu)\b|\b(?:debes|tienes que|deberas|ahora eres) (?:\w+ )?(?:siempre|nunca|responder|decir|recomendar|enviar|ignorar|ser|obedecer|un|una|el)\b|(?:^|[.!?:;,\n¡\"'(]\s{0,4}|\b(?:por favor|y|e|et|ora|tu|poi|agora|ahora|desormais|immer),? )(?:responde|contesta|recomienda|di|menciona|envia|reenvia|manda|actua|comportate|finge)\b(?: \S+){0,6}? (?:siempre|nunca|como|a|que|solo|solamente)\b|(?:^|[.!?:;,\n¡\"'(]\s{0,4}|\b(?:por favor|y|e|et|ora|tu|poi|agora|ahora|desormais|immer),? )(?:siempre|nunca|jamas|no) (?:responde|respondas|contesta|recomienda|di|digas|menciones|reveles|cuentes)\b|\bel asistente (?:debe|deberia|tiene)|\b(?:recuerda|anota) que el (?:admin\w*|dueno|propietario|usuario|jefe)|\bcuando (?:te|alguien|le)? ?(?:\w+ )?(?:pregunten?|pregunta)\b.{0,80}?\b(?:responde|di|recomienda)\b",
    # Portuguese
    r"\b(?:ignore|ignora|esqueca|esquece|desconsidere|desconsidera)\b(?: \S+){0,4} (?:instrucoes|regras|ordens|tudo|comandos)\b|\b(?:a partir de agora|de agora em diante)\b.{0,40}?\b(?:voce|tu|responda|responde|sempre|nunca|so|aja|e)\b|\bvoce (?:deve|precisa|agora e|tem que|nao deve|nao pode)\b|(?:^|[.!?:;,\n¡\"'(]\s{0,4}|\b(?:por favor|y|e|et|ora|tu|poi|agora|ahora|desormais|immer),? )(?:responda|recomende|diga|mencione|envie|encaminhe|aja|comporte-se|finja)\b(?: \S+){0,6}? (?:sempre|nunca|como|para|que|apenas|a|so)\b|(?:^|[.!?:;,\n¡\"'(]\s{0,4}|\b(?:por favor|y|e|et|ora|tu|poi|agora|ahora|desormais|immer),? )(?:sempre|nunca|nao) (?:responda|recomende|diga|mencione|revele)\b|\bo assistente (?:deve|deveria|tem|nao)|\b(?:lembre-se|lembra|lembre) (?:de )?que o (?:admin\w*|dono|proprietario|usuario|chefe)|\bquando (?:te |lhe |alguem )?(?:\w+ )?pergunta\w{0,3}\b.{0,80}?\b(?:responda|diga|recomende)\b",
    # Italian
    r"\b(?:ignora|ignorate|dimentica|trascura)\b(?: \S+){0,4} (?:istruzioni|regole|ordini|tutto|comandi)\b|\b(?:d'ora in poi|da ora in poi|da adesso|da questo momento)\b.{0,40}?\b(?:sei|devi|rispondi|sempre|mai|solo|non|tu)\b|\b(?:devi|dovrai|ora sei|adesso sei) (?:\w+ )?(?:sempre|mai|rispondere|dire|consigliare|inviare|ignorare|essere|obbedire|un|una|il)\b|(?:^|[.!?:;,\n¡\"'(]\s{0,4}|\b(?:por favor|y|e|et|ora|tu|poi|agora|ahora|desormais|immer),? )(?:rispondi|consiglia|raccomanda|di'|menziona|invia|inoltra|manda|agisci|comportati|fingi)\b(?: \S+){0,6}? (?:sempre|mai|come|a|che|solo|soltanto|di)\b|\bnon (?:dire|menzionare|rivelare|rispondere|dirlo)\b|\bl'assistente (?:deve|dovrebbe|non)|\b(?:ricorda|ricordati) che (?:l'|il )?(?:admin\w*|amministratore|proprietario|utente|capo)|\bquando (?:ti |qualcuno )?(?:\w+ )?(?:chiede|chiedono|chiesto)\b.{0,80}?\b(?:rispondi|di'|consiglia)",
    # Russian
    r"\b(?:игнорируй\w{0,2}|проигнорируй\w{0,2}|забудь\w{0,2}|не обращаи внимания)\b(?: \S+){0,4} (?:инструкц\w{1,3}|правил\w{0,2}|указани\w{1,2}|все|команд\w{0,2})\b|\b(?:игнорируи\w{0,2}|проигнорируи\w{0,2})\b(?: \S+){0,4} (?:инструкц\w{1,3}|правил\w{0,2}|указани\w{1,2}|все|команд\w{0,2})\b|\b(?:с этого момента|отныне|теперь ты|ты теперь|ты должен|ты должна|ты обязан|вы должны|тебе нельзя)\b|\b(?:всегда|никогда не|только) (?:отвечаи|рекомендуи|говори|упоминаи|сообщаи|отвечаите|советуи)\w{0,2}\b|\b(?:отвечаи|отправь|перешли|пришли|веди себя|притворись|деиствуи)\w{0,2}\b(?: \S+){0,5}? (?:всегда|как|на|только|будто)\b|\bассистент (?:должен|обязан|теперь)|\b(?:запомни|помни),? что (?:админ\w{0,10}|владелец|хозяин|пользователь)|\b(?:если|когда) (?:тебя )?(?:спросят|спрашивают)\b.{0,80}?\b(?:отвечаи|говори|скажи|ответь)\b|\bсистемн\w{2} (?:промпт|подсказк)\w?|\bне (?:говори|сообщаи|рассказываи) (?:\w+ ){0,2}(?:никому|пользователю|об этом)",
    # Chinese
    r"忽略.{0,12}(?:指令|指示|规则|規則|提示|内容|说明)|忘记.{0,8}(?:指令|之前|以上|规则)|无视.{0,12}(?:指令|指示|规则)|从现在(?:开始|起)|從現在|你(?:必须|必須|应该|應該|现在是|現在是|要扮演|不得|不能告诉|不要告诉)|系统提示|系統提示|(?:总是|永远|始终|一律|务必)(?:回答|回复|推荐|说|不要)|不要(?:告诉|提及|透露)|(?:扮演|假装你?是)|(?:转发|发送|转账|发邮件).{0,20}(?:给|到|至)|记住.{0,6}(?:管理员|主人|老板|所有者)|(?:当|如果).{0,12}问.{0,24}(?:回答|说|推荐|回复)|助手(?:应该|必须|应当|需要|不得|要)",
    # Japanese
    r"(?:指示|命令|ルール|プロンプト|規則).{0,6}(?:無視|忘れ)|無視し(?:て|ろ)|今(?:から|後は?)、?(?:あなた|必ず|常に|いつも|絶対|すべて)|これから(?:は|あなた|必ず|常に)|あなたは(?:今から|これから|必ず|もう|今)|システムプロンプト|(?:必ず|常に|いつも|決して|絶対に?).{0,24}(?:答え|回答|返信|推薦|勧め|言っ|言わ|言及).{0,6}(?:て|く|る|な|こと)|(?:ふりをし|として(?:振る舞|行動|回答))|(?:転送|送信|送って).{0,6}(?:して|ください|下さい|せよ|しろ)|管理者は.{0,20}(?:覚え|記憶)|(?:聞かれ|尋ねられ|質問され)たら.{0,40}(?:答え|言|勧め|回答)|アシスタントは.{0,30}(?:べき|なければ|こと|必ず)|誰にも(?:言わ|話さ)",
)  # fmt: skip
_ORDERS = tuple(LazyPattern(pattern) for pattern in (*_ENGLISH, *_OTHERS))


def contains_instructions(text: str) -> bool:
    """Say whether a text gives an assistant orders or a role, openly or obfuscated."""
    text = text[:_LONGEST]
    if _tagged(text) or _orders(text) or _orders(_INVISIBLE.sub("", text)):
        return True
    if _HIDDEN.search(text) and _orders(_INVISIBLE.sub("", text)):
        return True
    letters = normalize_unicode("NFKC", _INVISIBLE.sub("", text)).casefold().translate(_LOOK_ALIKE)
    if _mixes(text) and _orders(letters):
        return True
    joined = _SPACED.sub(
        lambda run: re.sub(r"[ .\-_*]{1}(?![ .\-_*])|[ .\-_*]{2}", _gap, run.group()), letters
    )
    if joined != letters and (_orders(joined) or _run_together(joined)):
        return True
    return any(_orders(read) for read in _decoded(text))


def _orders(text: str) -> bool:
    if _MARKS.search(text):
        return True
    low = fold_text(text)
    one_line = re.sub(r"[ \t]+", " ", low)
    return any(pattern.search(one_line) for pattern in _ORDERS)


def _tagged(text: str) -> bool:
    """Say whether a text contains invisible Unicode tag characters, which can hide orders."""
    hidden = "".join(chr(ord(sign) - 0xE0000) for sign in _TAGS.findall(text))
    return len(hidden) >= 8


def _mixes(text: str) -> bool:
    """Say whether a word mixes Latin letters with look-alikes of another script or digits."""
    for word in re.findall(r"[\w@$]{3,40}", text):
        latin = any("a" <= sign <= "z" for sign in word.casefold())
        other = any(sign in _LOOKS for sign in word.casefold())
        if latin and other:
            return True
    return False


_LOOKS = frozenset("аеорсухіјѕԁԛԝһвкмнтɑοαεικνρτυχɡⅼ0134@$")
_KEYS = (
    "ignoreprevious", "ignoreall", "ignoreprior", "ignoretheabove", "systemprompt", "youmust", "fromnowon", "youarenow", "previousinstructions", "allinstructions", "priorinstructions",
)  # fmt: skip


def _gap(hit: re.Match[str]) -> str:
    return " " if len(hit.group()) == 2 else ""


def _run_together(text: str) -> bool:
    squeezed = re.sub(r"[\W_]+", "", text)
    return any(key in squeezed for key in _KEYS) or "ignore" in text


def _decoded(text: str) -> list[str]:
    """Return the decoded text of base64 words, of at most twenty."""
    found = []
    for word in _BASE64.findall(text)[:20]:
        try:
            read = base64.b64decode(
                word.replace("-", "+").replace("_", "/").rstrip("=")
                + "=" * (-len(word.rstrip("=")) % 4)
            )
            said = read.decode()
        except (binascii.Error, ValueError):
            continue
        if said.isprintable() or "\n" in said:
            found.append(said)
    return found
