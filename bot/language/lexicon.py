"""Word tables of several languages. Pure.

The tables list stop words, negations, pronouns, relatives, months, weekdays, numbers and words of
equal meaning.

Rule 1: all words are folded (``fold_text``): lower case, no accents, plain quotes and dashes.
Rule 2: a word of several languages stands in the row that is right for most of them.
"""

from __future__ import annotations

from bot.core.folding import UNSPACED, fold_text
from bot.core.patterns import LazyPattern


def _set(text: str) -> frozenset[str]:
    return frozenset(fold_text(text).split())


def _rows(text: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for row in text.strip().splitlines():
        name, _, forms = row.partition(":")
        for form in forms.split():
            names.setdefault(fold_text(form), f"={name.strip()}")
    return names


NEGATIONS = _set(
    """
    not never no cannot neither nor none nothing nobody without hardly barely anymore
    dont doesnt didnt isnt arent wasnt werent wont cant couldnt wouldnt shouldnt havent hasnt hadnt
    nicht nie niemals kein keine keinen keinem keiner keines nichts niemand ohne weder nimmer
    ne pas jamais aucun aucune rien sans ni
    nunca jamas nada nadie ningun ninguno ninguna tampoco sin
    non mai niente nulla nessun nessuno nessuna nemmeno neanche senza
    nao nem nenhum nenhuma ninguem sem
    не нет никогда ни без никто ничего нельзя ні
    nie nigdy niet geen nooit niets zonder inte ingen inga aldrig ikke aldri ingenting
    degil yok hayir hic δεν οχι μην ποτε nu niciodata khong tidak bukan
    لا ليس لست لم لن ليست לא אין בלי नहीं ei en
    """
) - {"en", "ei", "nu"}
"""Single words that negate."""

NEGATIONS_UNSPACED = LazyPattern(
    "不|没|沒|从未|從未|無い|ない|なく|なかっ|ません|ませぬ|未だ|안 |않|못|없|아니|ไม่|নয়|नहीं"
)
HAS_ENDED = LazyPattern(
    r"\b(?:when i (?:lived|worked|studied|had)|(?:i|we) (?:also |once )?(?:lived|worked|studied) (?:in|at|for|as)|stopped|stop|stops|quit|quits|gave up|given up|gives up|no longer|used to|any more"
    r"|aufgehort|aufgegeben|fruher|nicht mehr|arrete|cesse|autrefois|deje de|dejo de|dejado de"
    r"|antes|ya no|smesso|una volta|deixei de|deixou de|parei de|parou de"
    r"|бросил\w{0,2}|перестал\w{0,2}|больше не|раньше|"
    r"sold|died|dead|passed away|broke up|split up|divorced|retired|cancell?ed|former|formerly"
    r"|(?:i was|we were) (?:a|an)|dropped|called off|got rid of|gave away|given away|(?:жил|работал|учил)\w?|until (?:last|\d{4}|recently)|tried|(?:i|we) had (?:a|an|my|our|two|three)|back then|growing up|as a (?:child|kid|boy|girl)|damals|als kind|habitais|travaillais|vivais"
    r"|j'avais|tenia|vivia|trabajaba|de pequen[oa]|avevo|vivevo|abitavo|suonavo|lavoravo|tinha|morava|trabalhava"
    r"|previously|ex|left (?!hand|side)|gestorben|verkauft|gekundigt|verlassen|getrennt|mort"
    r"|vendu|quitte|quitter|murio|vendi|vendio|morto|morta|venduto|lasciato|morreu|vendeu|умер"
    r"\w{0,3}|продал\w{0,2}|уволил\w{0,3}|ушел|ушла)\b|戒|不再|以前|やめ|辞め|死|昔は|曾经"
)
"""Says that something has ended, which denies that it still holds."""

WEAK_NEGATION = LazyPattern(
    r"\b(?:moved (?:away|out|from)|switched|instead|replaced|free of|free from|only|changed|out of"
    r"|refuse|avoid|lost|umgezogen|ausgezogen|statt|demenage|plutot|mudado?|cambie|traslocato"
    r"|переехал\w{0,2}|вместо|hate|allergi\w{0,8}|finished|ended|unable|vegetarian|vegan)\b"
)
"""May support a negative claim without being a negation."""


IDIOMS = LazyPattern(
    r"\bnot (?:only|just|to mention)\b|\bcan(?:'t|not) (?:wait|help|stop|believe)\b|\bcouldn't (?:be|agree)\b"
    r"|\b(?:don't|do not|never) forget\b|\bno (?:doubt|problem|worries|matter|wonder|kidding|joke)\b"
    r"|\b(?:don't|do not) (?:worry|mind)\b|\bwhy not\b|\bnot (?:kidding|joking)\b|\bno\.? ?(?=\d)"
    r"|\bnicht nur\b|\bvergiss nicht\b|\bkein (?:scherz|witz|problem)\b|\bnon seulement\b"
    r"|\bn'oublie pas\b|\bpas seulement\b|\bpas de probleme\b|\bno (?:solo|olvides)\b"
    r"|\bnon (?:solo|dimenticare)\b|\bnao (?:so|esqueca)\b|\bне (?:только|забудь)\b|\bне шучу\b"
    r"|不仅|不但|不只|不错|不好意思|不过|不同|不久|对不起|差不多|没问题|没关系|别忘了|要不|不客气"
    r"|だけでなく|忘れないで|かもしれない|なければなら|ないといけ|しかない|間違いない|少ない|じゃないか"
)
"""Idioms that look like a negation and are none."""

CONJUNCTIONS = _set(
    """but yet although though however whereas while because so and since sondern aber doch jedoch weil und
    denn mais et pero sino y porque aunque ma bensi perche mas porem pois e а но и потому"""
)
"""Conjunctions, which begin another clause."""

CONTRAST = _set("but sondern mais sino ma bensi mas а rather instead sino")
PREPOSITIONS = _set(
    """to in at on from with for near of by into nach in zu bei mit aus von fur auf an im am a chez avec
    en au aux de du dans pour con para por em com no na nos nas do da di dal della nel nella в во на с со из
    от к для у"""
)
ARTICLES = _set(
    "the a an my our der die das den dem ein eine einen einem le la les l un une el los las una il lo i gli o os as um uma"
)
AUXILIARIES = _set(
    """am is are was were be been do does did have has had will would can could should shall must may
    might i'm it's he's she's i've i'd i'll you're we're they're we've that's there's"""
)

FIRST_PERSON_PRONOUNS = _set(
    """
    i i'm im i've ive i'd i'll id me mine myself we we're we've we'd we'll us ourselves
    ich mir mich wir uns je j moi nous yo me conmigo nosotros nosotras io noi mi eu nos comigo
    я меня мне мной мы нас нам ja mnie mi ik mij wij jag mig vi jeg meg ben bana biz
    εγω εμενα minulla mina أنا لي عندي اسمي אני לי שלי मैं मुझे मेरे eu
    soy estoy tengo vivo trabajo hablo estudio prefiero quiero odio sono ho abito lavoro parlo
    sou estou tenho moro trabalho falo adoro prefiro gosto
    """
) - {"ive", "id", "mi"}
"""First person pronouns as subject or object."""

FIRST_PERSON_POSSESSIVES = _set(
    """my our mein meine meinen meinem meiner meines unser unsere unserer mon ma mes notre nos mi mis
    nuestro nuestra mio mia miei mie nostro nostra meu minha meus minhas nosso nossa мой моя мое мои
    моей моего моему моим моих мою наш наша moj moja moje mijn min mitt mina mine benim onze ons var"""
)
OTHER_PERSON_PRONOUNS = _set(
    """he she they you your his her their he's she's they're you're er sie du ihr sein seine ihre dein
    deine il elle ils elles tu vous son sa ses votre ton ta el ella ellos ellas usted ustedes tu
    lui lei loro voi egli ela eles voce он она они ты вы его ее их твой твоя"""
) - {"el", "il", "la", "ta", "sa", "son", "ton"}
"""Pronouns of the second and third person."""

IMPERSONAL_PRONOUNS = _set(
    "it this that there it's that's there's es das dies c'est ce ca eso esto это there"
)
RELATIVE_PRONOUNS = _set(
    "who whose which that qui dont que quien che chi der die das welche welcher который которая которые"
)

KIN = _rows(
    """
    sister: sister sisters sis schwester schwestern soeur sœur soeurs hermana hermanas sorella sorelle irma irmas сестра сестры сестре сестру сестрой siostra siostrę zus syster søster 妹妹 姐姐 妹 姉 여동생 언니 누나 أختي
    brother: brother brothers bro bruder brüder frère frères hermano hermanos fratello fratelli irmão irmãos брат брата брату братом brat broer bror 弟弟 哥哥 弟 兄 남동생 오빠 형 أخي
    mother: mother mum mom mama mutter mère maman madre mamá mamma mãe мать мама маме маму мамы мамой matka moeder 妈妈 母亲 母 お母さん 어머니 엄마 أمي
    father: father dad papa vater père padre papá papà babbo pai отец отца отцу папа папы папе ojciec vader 爸爸 父亲 父 お父さん 아버지 아빠 أبي
    wife: wife frau ehefrau femme épouse esposa mujer moglie mulher жена жены жене жену женой żona vrouw fru 妻子 老婆 太太 妻 아내 زوجتي
    husband: husband hubby ehemann mari époux esposo marido marito муж мужа мужу мужем mąż echtgenoot 丈夫 老公 夫 남편 زوجي
    son: son sons sohn söhne fils hijo hijos figlio figli filho filhos сын сына сыну сыном syn zoon sønn 儿子 息子 아들 ابني
    daughter: daughter daughters tochter töchter fille hija hijas figlia figlie filha filhas дочь дочери дочка дочки dochter córka 女儿 娘 딸 ابنتي
    child: child children kid kids baby kind kinder enfant enfants niño niños bambino bambini criança ребенок ребенка дети 孩子 子供 子ども 아이
    friend: mate pal buddy kumpel copain copine pote friend friends buddy freund freundin freunde ami amie amis amigo amiga amigos amico amica друг друга другу подруга подруги przyjaciel vriend vän venn 朋友 友達 友人 친구 صديقي
    partner: partner partnerin girlfriend boyfriend gf bf fiancé fiancée novio novia fidanzato fidanzata ragazzo ragazza namorado namorada petit-ami copain copine spouse 女朋友 男朋友 彼女 彼氏
    colleague: colleague colleagues coworker co-worker kollege kollegin collègue colega collega коллега 同事 同僚
    boss: boss manager supervisor chef chefin patron jefe jefa capo chefe начальник 老板 上司
    neighbour: neighbour neighbor nachbar nachbarin voisin voisine vecino vecina vicino vicina vizinho vizinha сосед соседка 邻居 隣人
    uncle: uncle onkel oncle tío zio tio дядя 叔叔 おじ
    aunt: aunt tante tía zia tia тетя 阿姨 おば
    cousin: cousin cousine primo prima cugino cugina кузен кузина двоюродный いとこ 表妹 表哥
    grandmother: grandmother grandma granny oma großmutter grand-mère mamie abuela nonna avó бабушка бабушке бабушки 奶奶 祖母 おばあさん
    grandfather: grandfather grandpa opa großvater grand-père papi abuelo nonno avô дедушка 爷爷 祖父 おじいさん
    parent: parents parent eltern padres genitori pais родители 父母 両親
    doctor: doctor dr arzt ärztin médecin docteur médico médica medico dottore врач доктор 医生 医者
    teacher: teacher lehrer lehrerin professeur prof profesor profesora insegnante professor professora учитель учительница 老师 先生
    dog: dog dogs puppy hund hunde hündin chien chiens perro perra perros cane cani cachorro cão собака собаку собаки пес pies hond 狗 犬 강아지 개
    cat: cat cats kitten katze katzen kater chat chats gato gata gatos gatto gatta gatti кошка кошку кошки кот кота kot kat katt 猫 고양이
    roommate: roommate flatmate mitbewohner mitbewohnerin colocataire coinquilino сосед
    niece: niece nichte nièce sobrina sobrinha племянница
    nephew: nephew neffe neveu sobrino sobrinho племянник
    pet: horse rabbit hamster parrot pferd kaninchen cheval lapin caballo conejo
    """
)
"""Terms of relatives, friends and pets, by each word for them."""
KIN_UNSPACED = tuple(sorted((form for form in KIN if UNSPACED.search(form)), key=len, reverse=True))

MEANINGS = _rows(
    """
    live: live lives living lived reside resides wohn wohne wohnt wohnst wohnen lebe lebt leben habite habites habitons vis vivo vive viven vivimos abito abita vivono moro mora moram живу живет живут жить mieszkam woon woont bor
    move: move moved moves moving relocate umgezogen gezogen ziehe umziehe déménagé déménage mudé mudó mudei mudou trasferito trasferita traslocato переехал переехала przeprowadziłem verhuisd
    work: work works working worked arbeite arbeitet arbeiten travaille travailles trabajo trabaja lavoro lavora trabalho trabalha работаю работает pracuję werk werkt jobbar
    like: like likes liked love loves enjoy enjoys adore adores mag mögen liebe liebt gern gerne aime adoro gusta gustan encanta encantan amo ama piace piacciono gosto gosta adora люблю любит нравится нравятся lubię hou houd gillar
    hate: hate hates hated dislike dislikes detest hasse hasst déteste odio odia detesto ненавижу ненавидит nienawidzę haat hatar
    eat: eat eats eating ate esse isst essen mange manger como come comer mangio mangia mangiare ем ест есть jem eet äter
    drink: drink drinks drinking trinke trinkt trinken bois boit bebo bebe bevo beve пью пьет piję drinkt dricker
    smoke: smoke smokes smoking smoked rauche raucht rauchen fume fumer fumo fuma fumar fumare курю курит курить palę rook rookt röker
    allergic: allergic allergy allergies allergisch allergie allergique alérgico alérgica alergia allergico allergica allergia аллергия uczulony allergisk
    speak: speak speaks spreche spricht parle parles hablo habla parlo parla falo fala говорю говорит mówię spreek spreekt talar
    own: have has having had own owns habe hat haben ai as ont tengo tiene tienen ho ha hanno tenho tem têm
    birthday: birthday geburtstag anniversaire cumpleaños compleanno aniversário рождения verjaardag urodziny
    favourite: favourite favorite lieblings préféré préférée favorito favorita preferito preferita любимый любимая любимое
    meat: meat fleisch viande carne мясо мяса mięso mięsa vlees kött
    nut: nut nuts nuss nüsse nüssen noix nueces noci nozes орехи noten
    milk: milk milch lait leche latte leite молоко mleko melk
    tea: tea tee thé té tè chá чай herbata thee
    coffee: coffee kaffee café caffè кофе kawa kawę kawy koffie kaffe
    fish: fish fisch poisson pescado pesce peixe рыба рыбу vis
    car: car auto voiture coche macchina carro машина машины машину машине машиной
    house: house haus maison casa дом huis
    city: city stadt ville ciudad città cidade город
    married: married marry marrying marries caso verheiratet marié mariée casado casada sposato sposata женат замужем
    colour: colour color farbe couleur colore cor цвет
    year: year years jahr jahre jahren ans an año años anni anno anos ano лет год года
    """
)
STOP_WORDS = {
    language: _set(words)
    for language, words in {
        "en": """
            a an the and or but if so of to in on at by for from with as about into over than then there i me my mine
            myself we us our ours you your yours he him his she her hers it its they them their theirs this that these
            those who whom whose which what when where why how am is are was were be been being do does did done have
            has had having can could will would shall should may might must not no yes any some ever never again also
            just really very much many too please ok okay oh well said user user's users s t d ll ve re m now
            currently already more most longer anymore still""",
        "de": """
            ich mir mich mein meine meinen meinem meiner bin ist sind war habe hat haben der die das den dem des ein
            eine einen einem einer und du in im am an auf zu zum zur bei mit von vom aus nach fur als auch nicht kein
            keine keinen es er sie wir wie wo wann wer nutzer nutzers nutzerin benutzer benutzerin seit jetzt""",
        "fr": """
            je j mon ma mes suis est et le la les l un une des du de d a au aux en dans avec pour que qui quel quelle
            comment ne n pas plus il elle ai utilisateur utilisatrice s'appelle""",
        "es": """
            yo mi mis me soy es esta estoy y el los las un una unos al en con para por que cual quien no su sus se ha
            he lo usuario usuaria del muy ya""",
        "it": """
            io mio mia sono e il gli lo i uno della del dei di da nel nella con per che non ho ha si suo sua utente
            l'utente""",
        "pt": """
            eu meu minha sou estou o os as um uma do da dos das no na em com para por que nao seu sua se tem usuario
            usuaria utilizador""",
        "ru": """
            я мне меня мой моя мои у и в во на с со из к о по что не нет это он она его ее пользователь пользователя
            пользовательница есть был была""",
        "pl": "ja moj moja jest sie w z na i nie do uzytkownik",
        "nl": "ik ben is een het de van en met mijn niet gebruiker",
    }.items()
}
"""Words too common to count as content, by language."""

NUMBERS = {
    word: value
    for value, forms in {
        0: "zero null zéro cero нуль ноль",
        1: "one eins ein eine einen einem einer un une uno una um uma один одна одного одну",
        2: "two zwei deux dos due dois duas два две двух двое twins zwillinge jumeaux jumelles gemelos gemelas gemelli gêmeos близнецы couple pair both beide beiden deuxième second",
        3: "three drei trois tres tre três три трех трое третий третьем третья third dritte dritten troisième tercero tercer triplets",
        4: "four vier quatre cuatro quattro quatro четыре четырех четверо fourth vierte vierten",
        5: "five fünf cinq cinco cinque пять пяти fifth fünfte",
        6: "six sechs seis sei шесть шести sixth",
        7: "seven sieben sept siete sette sete семь семи seventh",
        8: "eight acht huit ocho otto oito восемь восьми eighth",
        9: "nine neun neuf nueve nove девять девяти ninth",
        10: "ten zehn dix diez dieci dez десять десяти tenth",
        11: "eleven elf onze once undici одиннадцать",
        12: "twelve dozen zwölf dutzend douze douzaine doce docena dodici dozzina doze dúzia двенадцать дюжина",
        13: "thirteen dreizehn treize trece tredici treze тринадцать",
        14: "fourteen vierzehn quatorze catorce quattordici catorze четырнадцать",
        15: "fifteen fünfzehn quinze quince quindici пятнадцать",
        16: "sixteen sechzehn seize dieciséis sedici dezesseis dezasseis шестнадцать",
        17: "seventeen siebzehn dix-sept diecisiete diciassette dezessete dezassete семнадцать",
        18: "eighteen achtzehn dix-huit dieciocho diciotto dezoito восемнадцать",
        19: "nineteen neunzehn dix-neuf diecinueve diciannove dezenove dezanove девятнадцать",
        20: "twenty zwanzig vingt veinte venti vinte двадцать двадцати",
        30: "thirty dreißig trente treinta trenta trinta тридцать",
        40: "forty vierzig quarante cuarenta quaranta quarenta сорок",
        50: "fifty fünfzig cinquante cincuenta cinquanta cinquenta пятьдесят",
        60: "sixty sechzig soixante sesenta sessanta sessenta шестьдесят",
        70: "seventy siebzig septante setenta settanta семьдесят",
        80: "eighty achtzig quatre-vingt quatre-vingts huitante ochenta ottanta oitenta восемьдесят",
        90: "ninety neunzig nonante noventa novanta девяносто",
        100: "hundred hundert einhundert cent cents cien ciento cento cem сто",
        1000: "thousand tausend eintausend mille mil mila тысяча тысячи тысяч",
    }.items()
    for word in fold_text(forms).split()
}
NUMBERS |= {"twice": 2, "zweimal": 2, "doppelt": 2, "дважды": 2, "thrice": 3, "dreimal": 3}
_DE = "ein zwei drei vier funf sechs sieben acht neun".split()
_IT = "uno due tre quattro cinque sei sette otto nove".split()
_ES = "uno dos tres cuatro cinco seis siete ocho nueve".split()
NUMBERS |= {
    fold_text(word): (at + 2) * 100
    for forms in (
        "двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот",
        "doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos",
        "duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos",
    )
    for at, word in enumerate(forms.split())
}
for _unit in range(1, 10):
    NUMBERS[f"{_DE[_unit - 1]}hundert"] = _unit * 100
    NUMBERS["veinti" + _ES[_unit - 1]] = 20 + _unit
    for _ten in range(20, 100, 10):
        _german = next(
            w
            for w, v in NUMBERS.items()
            if (v == _ten and w.endswith("zig")) or (v == _ten and w == "dreissig")
        )
        _italian = next(
            w
            for w, v in NUMBERS.items()
            if v == _ten
            and w.endswith(("nta", "nti"))
            and w not in ("treinta", "trinta", "quarenta", "cuarenta")
        )
        NUMBERS[f"{_DE[_unit - 1]}und{_german}"] = _ten + _unit
        _stem = _italian[:-1] if _unit in (1, 8) else _italian
        NUMBERS.setdefault(_stem + _IT[_unit - 1], _ten + _unit)

MONTHS = {
    word: number
    for number, forms in enumerate(
        (
            "january jan januar jänner janvier enero gennaio janeiro январь января январе stycznia januari",
            "february feb februar février febrero febbraio fevereiro февраль февраля феврале lutego februari",
            "march mar märz mars marzo março март марта марте marca maart",
            "april apr avril abril aprile апрель апреля апреле kwietnia",
            "may mai mayo maggio maio май мая мае maja mei",
            "june jun juni juin junio giugno junho июнь июня июне czerwca",
            "july jul juli juillet julio luglio julho июль июля июле lipca",
            "august aug août agosto август августа августе sierpnia augustus augusti",
            "september sep sept septembre septiembre settembre setembro сентябрь сентября сентябре września",
            "october oct oktober okt octobre octubre ottobre outubro октябрь октября октябре października",
            "november nov novembre noviembre novembro ноябрь ноября ноябре listopada",
            "december dec dezember dez décembre diciembre dicembre dezembro декабрь декабря декабре grudnia",
        ),
        start=1,
    )
    for word in fold_text(forms).split()
}
WEEKDAYS = {
    word: number
    for number, forms in enumerate(
        (
            "monday mon mondays montag montags lundi lunes lunedì segunda segunda-feira понедельник понедельника poniedziałek poniedziałku poniedziałki maandag 周一 星期一 礼拜一 月曜 月曜日",
            "tuesday tue tues tuesdays dienstag dienstags mardi martes martedì terça terça-feira вторник вторника wtorek wtorku wtorki dinsdag 周二 星期二 火曜 火曜日",
            "wednesday wed weds wednesdays mittwoch mittwochs mercredi miércoles mercoledì quarta-feira среда среду среды środa środę środy woensdag 周三 星期三 水曜 水曜日",
            "thursday thu thur thurs thursdays donnerstag donnerstags jeudi jueves giovedì quinta-feira четверг четверга czwartek czwartku czwartki donderdag 周四 星期四 木曜 木曜日",
            "friday fri fridays freitag freitags vendredi viernes venerdì sexta sexta-feira пятница пятницу пятницы piątek piątku piątki vrijdag 周五 星期五 金曜 金曜日",
            "saturday sat saturdays samstag samstags sonnabend samedi sábado sabato суббота субботу субботы sobota sobotę soboty zaterdag 周六 星期六 土曜 土曜日",
            "sunday sun sundays sonntag sonntags dimanche domingo domenica воскресенье воскресенья niedziela niedzielę niedziele niedzieli zondag 周日 星期日 星期天 日曜 日曜日",
        )
    )
    for word in fold_text(forms).split()
}
