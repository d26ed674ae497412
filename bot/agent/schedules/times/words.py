"""The words of time in each language, as a table. Pure.

A line is ``CLASS: word, word; word``. The forms between two ";" mean the same, and the next ones the next value of the class
(``VALUES``). ``CLASS3`` gives a value itself, and several classes what a form stands for in turn: ``r0 p19: tonight``.
The forms are folded as texts are: accents and capitals do not matter.

n numbers from 1 · h half an hour, a quarter, three quarters · H a half more, behind a number or a unit
u seconds, hours, days, weeks, months, years · M minutes · C hours that are also the mark of an hour ("8 heures") · c only the mark
D, Z, Y day, month and year behind a number ("5月3日") · q marks an ordinal, as does j, a full stop · o first to fifth, o-1 last · Q second (two meanings)
i before a distance · f behind it · e every · F behind it · v hourly to yearly
r today, tomorrow, after it · w weekdays · k their abbreviations · W each such day · b workdays, weekend · B on each of them
X next week · m months · J the last day of the month · O the number behind it is a day · a before a time · P am, pm
T noon, midnight · y the minutes that "half past" and its like add · p morning, noon, afternoon, evening, night · R the same, alone
s may stand between or before parts · S may end a time · N the same as s, but belongs to the text before a time at the end
g and · G to · l "for", "after" · L says that a time is more or other than what stands beside it: "until", "or", "last"
"""

from __future__ import annotations

_UNITS, _WEEK = ("seconds", "hours", "days", "weeks", "months", "years"), tuple(range(7))
_SETS, _PARTS = (frozenset(range(5)), frozenset((5, 6))), (9, 12, 15, 19, 21)
VALUES: dict[str, tuple[object, ...]] = {
    "n": tuple(range(1, 21)), "m": tuple(range(1, 13)), "o": (1, 2, 3, 4, 5), "Q": (2,), "e": (1, 2), "r": (0, 1, 2),
    "u": _UNITS, "v": _UNITS[1:], "M": ("minutes",), "C": ("hours",), "D": ("days",), "O": ("days",), "Z": ("months",),
    "Y": ("years",), "w": _WEEK, "k": _WEEK, "W": _WEEK, "b": _SETS, "B": _SETS, "p": _PARTS, "R": _PARTS,
    "T": (12, 0), "P": (0, 12), "h": (1_800, 900, 2_700), "y": (30, 15, -15, -30, -45),
}  # fmt: skip
"""What the forms of a class stand for, in order; others stand for nothing but their class."""

EVERYWHERE = ",: ,; (; ); [; ]; 、; ،; :; j: .; g: &, +; G: -; a: @; L: %, €, $, £, ~, 〜"
"""Signs that mean the same in every language."""

EXAMPLES = {
    "en": ("in 20 minutes", "tomorrow at 17:00", "every Monday at 8", "on 3 May at 9"),
    "de": ("in 20 Minuten", "morgen um 17:00", "jeden Montag um 8", "am 3. Mai um 9"),
    "fr": ("dans 20 minutes", "demain à 17:00", "chaque lundi à 8h", "le 3 mai à 9h"),
    "es": ("en 20 minutos", "mañana a las 17:00", "cada lunes a las 8", "el 3 de mayo a las 9"),
    "pt": ("em 20 minutos", "amanhã às 17:00", "toda segunda às 8", "em 3 de maio às 9"),
    "it": ("tra 20 minuti", "domani alle 17:00", "ogni lunedì alle 8", "il 3 maggio alle 9"),
    "ru": ("через 20 минут", "завтра в 17:00", "каждый понедельник в 8", "3 мая в 9"),
    "uk": ("через 20 хвилин", "завтра о 17:00", "щопонеділка о 8", "3 травня о 9"),
    "zh": ("20分钟后", "明天17:00", "每周一8点", "5月3日9点"),
    "ja": ("20分後", "明日17:00", "毎週月曜日8時", "5月3日9時"),
    "ar": ("بعد 20 دقيقة", "غدا الساعة 17:00", "كل يوم اثنين الساعة 8", "3 مايو الساعة 9"),
}
"""Times by which each language is explained: a while, a day, a repetition, a date."""

WORDS = {
    "en": """
        n: one, a, an; two; three; four; five; six; seven; eight; nine; ten; eleven; twelve; thirteen; fourteen; fifteen; sixteen; seventeen; eighteen; nineteen; twenty
        n25: twenty-five; n30: thirty; n40: forty; n45: forty-five; n50: fifty; n90: ninety
        h: half an hour, half hour, half a hour; quarter of an hour, a quarter of an hour; three quarters of an hour; H: and a half
        u: seconds, sec, secs; hour, hours, hr, hrs, h; day, days, d; week, weeks, wk, wks; month, months; year, years
        M: minute, minutes, min, mins, m; q: st, nd, rd, th; o: first; ; third; fourth; fifth; o-1: last; Q: second; i: in; f: from now, from today
        e: every, each; every other, each other; v: hourly; daily, everyday, every single day; weekly; monthly; yearly, annually; r: today; tomorrow, tmrw; day after tomorrow, the day after tomorrow
        r0 p19: tonight, this evening; r0 p9: this morning; r0 p15: this afternoon; r1 p21: tomorrow night; r1 p9: first thing tomorrow
        w: monday; tuesday; wednesday; thursday; friday; saturday; sunday; k: mon; tue, tues; wed, weds; thu, thurs; fri; sat; sun
        W: mondays; tuesdays; wednesdays; thursdays; fridays; saturdays; sundays; b: weekday, workday, working day; weekend
        B: on weekdays, weekdays, on workdays, monday to friday; on weekends, weekends; X: next, next week, of next week
        m: january, jan; february, feb; march, mar; april, apr; may; june, jun; july, jul; august, aug; september, sep, sept; october, oct; november, nov; december, dec
        J: last day, end of the month, last day of the month, the last day of the month, at the end of the month
        J e1 u4: at the end of every month, end of every month; a1: at; c: o'clock; P: am, a.m., a.m; pm, p.m., p.m; T: noon, midday; midnight
        y: half past; quarter past, a quarter past; quarter to, a quarter to; p: morning; lunchtime; afternoon; evening; night
        R: in the morning, mornings; at lunchtime; in the afternoon, afternoons; in the evening, evenings; at night
        s: on, of, coming, this, or last day; N: the, my, your, his, her, our, their, than; g: and; G: to, through, thru; l: for, about, good
        L: always, or, until, till, by, before, after, since, from, between, except, starting, beginning, during, ago, past, next month, next year, earlier, later, soon, twice, times
    """,
    "de": """
        n: ein, eine, einer, einem, einen, eins, ner; zwei; drei; vier; fünf; sechs; sieben; acht; neun; zehn; elf; zwölf; dreizehn; vierzehn; fünfzehn; sechzehn; siebzehn; achtzehn; neunzehn; zwanzig
        n25: fünfundzwanzig; n30: dreißig, dreissig; n40: vierzig; n45: fünfundvierzig; n50: fünfzig; n90: neunzig; n1 H: anderthalb, eineinhalb
        n2 H: zweieinhalb; h: halbe stunde, halben stunde; viertelstunde; dreiviertelstunde
        u: sekunde, sekunden, sek; stunde, stunden, std, h; tag, tage, tagen, tages; woche, wochen; monat, monate, monaten, monats; jahr, jahre, jahren, jahres
        M: minute, minuten, min; o: ersten, erste, erster; zweiten, zweite, zweiter; dritten, dritte, dritter; vierten, vierte; fünften, fünfte
        o-1: letzten, letzte, letzter; i: in; e: jeden, jede, jedes, jeder, jedem, alle; v: stündlich; täglich, taeglich; wöchentlich; monatlich; jährlich; r: heute; morgen; übermorgen, uebermorgen
        r1 p9: morgen früh, morgen vormittag; r0 p9: heute morgen, heute früh; w: montag; dienstag; mittwoch; donnerstag; freitag; samstag, sonnabend; sonntag; k: mo; di; mi; do; fr; sa; so
        W: montags; dienstags; mittwochs; donnerstags; freitags; samstags, sonnabends; sonntags; b: werktag, wochentag, arbeitstag; wochenende
        B: von montag bis freitag, montag bis freitag, werktags, an werktagen, wochentags; an wochenenden; X: nächsten, nächste, nächste woche, nächster woche, kommende woche
        m: januar, jänner, jan; februar, feb; märz; april, apr; mai; juni, jun; juli, jul; august, aug; september, sep, sept; oktober, okt; november, nov; dezember, dez
        J: letzten tag, letzter tag, ende des monats, monatsende, monatsletzten; J e1 u4: ende jedes monats, ende jeden monats; O: tag :; a: um, gegen
        c: uhr; T: mittag, zu mittag; mitternacht; y: ; viertel nach; viertel vor, dreiviertel; halb; viertel; p: morgen, früh, vormittag; ; nachmittag; abend; nacht
        R: morgens, vormittags, am morgen, am vormittag, in der früh; mittags, am mittag; nachmittags, am nachmittag; abends, am abend; nachts
        e1 u2 p9: jeden morgen, jeden vormittag; s: am, an, im, zum, des, kommenden, diesen, oder letzten tag, oder der letzte
        N: der, die, das, den, dem, mein, meine, meinen, unser, unsere, vom, von; l: für, nach, guten; g: und, u.; G: bis
        L: immer, jeweils, jew, oder, vor, seit, ab, zwischen, außer, ausser, ohne, letzte, letzten, lang, später, bald, zweimal, dreimal
    """,
    "fr": """
        n: un, une; deux; trois; quatre; cinq; six; sept; huit; neuf; dix; onze; douze; treize; quatorze; quinze; seize; dix-sept; dix-huit; dix-neuf; vingt
        n25: vingt-cinq; n30: trente; n40: quarante; n45: quarante-cinq; n50: cinquante; h: demi-heure, demi heure; quart d'heure; trois quarts d'heure; H: et demie, et demi
        u: seconde, secondes; ; jour, jours; semaine, semaines; mois; an, ans, année, années; C: heure, heures, h; M: minute, minutes, min; q: er, e
        o: premier; deuxième, second; troisième; quatrième; cinquième; o-1: dernier; i: dans, d'ici; e: chaque, tous les, toutes les, tout les
        r: aujourd'hui; demain; après-demain; r0 p9: ce matin; r0 p15: cet après-midi; r0 p19: ce soir; w: lundi; mardi; mercredi; jeudi; vendredi; samedi; dimanche
        W: lundis, les lundis; mardis, les mardis; mercredis, les mercredis; jeudis, les jeudis; vendredis, les vendredis; samedis, les samedis; dimanches, les dimanches
        b: jour de semaine, jours de semaine, jour ouvrable, jours ouvrables, jour ouvré, jours ouvrés; week-end, week-ends
        B: en semaine, du lundi au vendredi; X: de la semaine prochaine, la semaine prochaine
        m: janvier, janv; février, févr; mars; avril; mai; juin; juillet, juil; août; septembre, sept; octobre, oct; novembre, nov; décembre, déc
        J: dernier jour, dernier jour du mois, fin du mois, à la fin du mois; O: le; a: à, vers; T: midi; minuit
        p: matin, matins, du matin; ; après-midi, de l'après-midi; soir, soirs, du soir; nuit, de la nuit; R: le matin; ; l'après-midi; le soir; la nuit
        s: de, du, en, ce, ou le dernier jour; N: la, les, l', mon, ma, mes, notre, des; g: et; G: au; l: pour
        L: ou, jusqu'à, jusqu'au, jusqu'en, avant, après, depuis, entre, sauf, pendant, prochain, prochaine, dernière, passé, plus, fois, à partir
    """,
    "es": """
        n: un, una, uno; dos; tres; cuatro; cinco; seis; siete; ocho; nueve; diez; once; doce; trece; catorce; quince; dieciséis; diecisiete; dieciocho; diecinueve; veinte
        n25: veinticinco; n30: treinta; n40: cuarenta; n45: cuarenta y cinco; n50: cincuenta; h: media hora; cuarto de hora, un cuarto de hora; tres cuartos de hora; H: y media, y medio
        u: segundos; ; días; semana, semanas; mes, meses; año, años; C: hora, horas, h; M: minuto, minutos, min; q: º, ª
        o: primer, primero; segundo; tercer, tercero; cuarto; quinto; o-1: último; i: en, dentro de; e: cada, todos los, todas las
        v: ; diariamente, a diario; semanalmente; mensualmente; anualmente; r: hoy; mañana; pasado mañana; r0 p9: esta mañana; r0 p15: esta tarde
        r0 p21: esta noche; r1 p9: mañana por la mañana; r1 p15: mañana por la tarde; r1 p21: mañana por la noche; w: lunes; martes; miércoles; jueves; viernes; sábado; domingo
        W: los lunes; los martes; los miércoles; los jueves; los viernes; sábados, los sábados; domingos, los domingos
        b: día laborable, días laborables, día hábil, días hábiles; fin de semana, fines de semana
        B: entre semana, de lunes a viernes; los fines de semana; X: de la próxima semana, de la semana que viene, la próxima semana
        m: enero, ene; febrero, feb; marzo; abril, abr; mayo; junio, jun; julio, jul; agosto, ago; septiembre, setiembre, sep, sept; octubre, oct; noviembre, nov; diciembre, dic
        J: último día, último día del mes, fin de mes, a fin de mes; O: el, el día, día; a: a las, a la
        T: mediodía, al mediodía, a mediodía; medianoche, a medianoche; P: a.m., am; p.m., pm; P0: de la madrugada
        p: de la mañana, por la mañana; ; de la tarde, por la tarde; ; de la noche, por la noche; e1 u2 p9: cada mañana, todas las mañanas
        e1 u2 p21: cada noche, todas las noches; s: de, del, este, o el último, o el último día; N: la, los, las, mi, mis, nuestra, al; g: y; G: a; l: para, durante, por
        L: o, hasta, antes, después, desde, entre, salvo, excepto, menos, próximo, próxima, siguiente, pasado, pasada, que viene, veces
    """,
    "pt": """
        n: um, uma; dois, duas; três; quatro; cinco; seis; sete; oito; nove; dez; onze; doze; treze; catorze, quatorze; quinze; dezesseis; dezessete; dezoito; dezenove; vinte
        n25: vinte e cinco; n30: trinta; n40: quarenta; n45: quarenta e cinco; n50: cinquenta; h: meia hora; quarto de hora, um quarto de hora; três quartos de hora; H: e meia, e meio
        u: segundos; ; dias; semana, semanas; mês, meses; ano, anos; C: hora, horas, h; M: minuto, minutos, min; q: º, ª
        o: primeiro, primeira; segundo; terceiro; quarto; quinto; o-1: último, última; i: em, daqui a, dentro de
        e: cada, a cada, todo, toda, todos os, todas as; v: ; diariamente; semanalmente; mensalmente; anualmente; r: hoje; amanhã; depois de amanhã; r1 p9: amanhã de manhã
        w: segunda, segunda-feira; terça, terça-feira; quarta, quarta-feira; quinta, quinta-feira; sexta, sexta-feira; sábado; domingo
        W: segundas, às segundas, segundas-feiras; terças, às terças, terças-feiras; quartas, às quartas, quartas-feiras; quintas, às quintas, quintas-feiras; sextas, às sextas, sextas-feiras; sábados, aos sábados; domingos, aos domingos
        b: dia útil, dias úteis; fim de semana, fins de semana; B: de segunda a sexta, em dias úteis, nos dias úteis; aos fins de semana, nos fins de semana
        X: da próxima semana, da semana que vem, na próxima semana
        m: janeiro, jan; fevereiro, fev; março; abril, abr; maio; junho, jun; julho, jul; agosto, ago; setembro, set; outubro, out; novembro, nov; dezembro, dez
        J: último dia, último dia do mês, fim do mês, no fim do mês; O: dia, no dia, o dia; a: às; T: meio-dia, ao meio-dia; meia-noite, à meia-noite
        p: da manhã, de manhã; ; da tarde, à tarde; ; da noite, à noite; P0: da madrugada; r0 p9: hoje de manhã; e1 u2 p9: toda manhã, todas as manhãs
        e1 u2 p21: toda noite, todas as noites; s: de, do, no, na, nesta, neste, ou no último dia, ou no último; N: o, a, os, meu, minha, nosso, da; g: e; G: a; l: para, durante, por
        L: ou, até, antes, depois, desde, entre, exceto, menos, próximo, próxima, seguinte, passado, passada, que vem, vezes
    """,
    "it": """
        n: un, una, uno, un'; due; tre; quattro; cinque; sei; sette; otto; nove; dieci; undici; dodici; tredici; quattordici; quindici; sedici; diciassette; diciotto; diciannove; venti
        n25: venticinque; n30: trenta; n40: quaranta; n45: quarantacinque; n50: cinquanta; h: mezz'ora, mezzora; quarto d'ora, un quarto d'ora; tre quarti d'ora; H: e mezza, e mezzo
        u: secondi; ; giorni; settimana, settimane; mese, mesi; anno, anni; C: ora, ore, h; n1 C: un'ora; a n1: all'una; M: minuto, minuti, min; q: º
        o: primo; secondo; terzo; quarto; quinto; o-1: ultimo; i: tra, fra, in; e: ogni, tutti i, tutte le; r: oggi; domani; dopodomani
        r0 p19: stasera; r0 p9: stamattina, questa mattina; r0 p15: oggi pomeriggio, questo pomeriggio; r1 p9: domani mattina; r1 p19: domani sera
        w: lunedì; martedì; mercoledì; giovedì; venerdì; sabato; domenica
        W: di lunedì; di martedì; di mercoledì; di giovedì; di venerdì; di sabato, sabati; di domenica, domeniche
        b: giorno feriale, giorni feriali, giorno lavorativo, giorni lavorativi; fine settimana, weekend
        B: dal lunedì al venerdì, nei giorni feriali; nei fine settimana; X: della prossima settimana, la prossima settimana, della settimana prossima
        m: gennaio, gen; febbraio, feb; marzo; aprile, apr; maggio; giugno, giu; luglio, lug; agosto, ago; settembre, set, sett; ottobre, ott; novembre, nov; dicembre, dic
        J: ultimo giorno, l'ultimo giorno, ultimo giorno del mese, l'ultimo giorno del mese, fine del mese, alla fine del mese
        O: il, il giorno, giorno, l'; a: alle, alla, all', verso le; T: mezzogiorno, a mezzogiorno; mezzanotte, a mezzanotte
        p: mattina, mattine, di mattina, del mattino, mattino; ; pomeriggio, del pomeriggio, di pomeriggio; sera, sere, di sera; notte, di notte
        R: la mattina, al mattino; ; nel pomeriggio; la sera
        s: di, del, questo, o l'ultimo giorno, o ultimo giorno; N: lo, la, i, gli, le, mio, mia, nostro, della; g: e, ed; G: a, al; l: per, durante
        L: o, oppure, fino, entro, prima, dopo, da, dal, tranne, eccetto, prossimo, prossima, scorso, scorsa, volte
    """,
    "ru": """
        n: один, одну, одна; два, две; три; четыре; пять; шесть; семь; восемь; девять; десять; одиннадцать; двенадцать; тринадцать; четырнадцать; пятнадцать; шестнадцать; семнадцать; восемнадцать; девятнадцать; двадцать
        n30: тридцать; n40: сорок; n45: сорок пять; n50: пятьдесят; n25: двадцать пять; n1 H: полтора, полторы; h: полчаса, пол часа; четверть часа
        H: с половиной; u: секунду, секунды, секунд, сек; ; день, дня, дней; неделю, недели, недель; месяц, месяца, месяцев; год, года, лет, г.
        C: час, часа, часов, ч; M: минуту, минуты, минут, мин; D: числа, -го числа, число; q: -го, -е
        o: первого, первый, первую; второго, второй, вторую; третьего, третий, третью; o-1: последний, последнюю; i: через
        e: каждый, каждого, каждой, каждую, каждое, каждые, раз в; e1 n1 u1: ежечасно; v: ; ежедневно; еженедельно; ежемесячно; ежегодно
        r: сегодня; завтра; послезавтра; w: понедельник; вторник; среда, среду; четверг; пятница, пятницу; суббота, субботу; воскресенье; k: пн; вт; ср; чт; пт; сб; вс
        W: по понедельникам, понедельникам; по вторникам, вторникам; по средам, средам; по четвергам, четвергам; по пятницам, пятницам; по субботам, субботам; по воскресеньям, воскресеньям
        b: будний день, рабочий день; выходные; B: с понедельника по пятницу, по будням, в будни, по рабочим дням; по выходным; X: на следующей неделе, следующей недели
        m: января, янв; февраля, фев; марта; апреля, апр; мая; июня; июля; августа, авг; сентября, сен; октября, окт; ноября, ноя; декабря, дек
        J: последний день, последний день месяца, в последний день месяца, в конце месяца; O: день :; a: в, во, к; T: полдень; полночь
        p: утра, утром, утро; ; дня, днём; вечера, вечером, вечер; ночи, ночью; R: утром; ; днём; вечером; ночью; s: это, эту, или последний; N: мой, мою, наш, нашу, о, об; g: и; G: по
        L: или, до, после, перед, с, со, между, кроме, начиная, течение, следующий, следующую, прошлый, прошлую, назад, раза, раз
    """,
    "uk": """
        n: один, одну, одна; два, дві; три; чотири; п'ять; шість; сім; вісім; дев'ять; десять; одинадцять; дванадцять; тринадцять; чотирнадцять; п'ятнадцять; шістнадцять; сімнадцять; вісімнадцять; дев'ятнадцять; двадцять
        n30: тридцять; n40: сорок; n45: сорок п'ять; n50: п'ятдесят; n25: двадцять п'ять; n1 H: півтора, півтори; h: півгодини, пів години; чверть години; H: з половиною
        u: секунду, секунди, секунд, сек; ; день, дні, днів, дня; тиждень, тижні, тижнів; місяць, місяці, місяців, місяця; рік, роки, років, року, р.
        C: годину, години, годин, годині, год; M: хвилину, хвилини, хвилин, хв; D: числа, -го числа, число; q: -го, -е
        o: першого, перший, першу; другого, другий, другу; третього, третій, третю; o-1: останній, останню; i: через, за
        e: кожен, кожного, кожну, кожної, кожне, кожні, раз на; e1 M: щохвилини; v: щогодини; щодня; щотижня; щомісяця; щороку; r: сьогодні; завтра; післязавтра
        w: понеділок, понеділка; вівторок, вівторка; середа, середу, середи; четвер, четверга; п'ятниця, п'ятницю, п'ятниці; субота, суботу, суботи; неділя, неділю, неділі
        k: пн; вт; ср; чт; пт; сб; нд; W: щопонеділка; щовівторка; щосереди; щочетверга; щоп'ятниці; щосуботи; щонеділі
        b: будній день, робочий день; вихідні; B: з понеділка по п'ятницю, щобудня, у будні, в будні, по буднях; щовихідних, на вихідних
        X: наступного тижня; m: січня, січ; лютого, лют; березня, бер; квітня; травня; червня; липня; серпня; вересня; жовтня; листопада; грудня
        J: останній день, останній день місяця, в останній день місяця, наприкінці місяця; O: день :; a: о, об, у, в; T: полудень, опівдні; опівночі
        p: ранку, вранці, ранок; ; дня, вдень; вечора, ввечері, увечері, вечір; ночі, вночі; R: вранці; ; вдень; ввечері, увечері; вночі
        e1 u2 p9: щоранку; e1 u2 p19: щовечора; s: цей, цю, або останній; N: мій, мою, наш, нашу, про; g: і, й, та
        G: по; L: або, чи, до, після, перед, з, із, між, крім, починаючи, протягом, наступний, наступну, наступної, минулий, минулу, тому, рази
    """,
    "zh": """
        h: 半小时, 半个小时; 一刻钟; 三刻钟; H: 半; H u1: 个半小时; u: 秒, 秒钟; 小时, 个小时; 天; 周, 星期, 个星期, 礼拜, 个礼拜; 个月; M: 分钟, 分; c: 点, 点钟, 时; D: 日, 号; Z: 月; Y: 年
        o: 第一个, 第一; 第二个, 第二; 第三个, 第三; o-1: 最后一个; f: 后, 之后, 以后; e: 每, 每个, 每隔, 每逢; r: 今天, 今日; 明天, 明日; 后天; r0 p19: 今晚; r1 p19: 明晚; r1 p9: 明早
        w: 星期一, 周一, 礼拜一; 星期二, 周二, 礼拜二; 星期三, 周三, 礼拜三; 星期四, 周四, 礼拜四; 星期五, 周五, 礼拜五; 星期六, 周六, 礼拜六; 星期日, 周日, 星期天, 礼拜天, 周天; b: 工作日; 周末
        B: 周1至周5, 周1到周5, 星期1到星期5, 星期1至星期5; X: 下, 下周的, 下个; J: 最后一天, 最后一日, 月底; T: 正午; 午夜; R: 早上, 上午, 早晨, 清晨; 中午; 下午; 晚上, 傍晚; 夜里; P0: 凌晨
        s: 的, 在, 于, 是, 或最后一天; N: 我的, 这个; g: 和, 与; G: 到, 至; L: 或, 或者, 之前, 以前, 前, 上周, 上个, 除了, 从, 直到, 为止, 次
    """,
    "ja": """
        h: 半時間; H: 半; u: 秒; 時間; ; 週間, 週; か月, ヶ月, カ月, ケ月, 箇月, ヵ月; M: 分, 分間; c: 時; D: 日, 日間; Z: 月; Y: 年, 年間; o: 第1; 第2; 第3; 第4; 第5; f: 後, 後に, あと; e: 毎
        e1 M: 毎分; v: 毎時, 毎時間, 1時間ごと; 毎日; 毎週, 毎週の; 毎月; 毎年; F: ごと, 毎, おき, ごとの, ごとに; r: 今日, 本日; 明日, あした; 明後日, あさって; r0 p19: 今晩, 今夜; r1 p19: 明晩
        w: 月曜日, 月曜; 火曜日, 火曜; 水曜日, 水曜; 木曜日, 木曜; 金曜日, 金曜; 土曜日, 土曜; 日曜日, 日曜; b: 平日; 週末; B: 平日毎日, 毎平日, 月曜日から金曜日まで, 月曜日から金曜日; 毎週末; X: 来週の, 来週
        J: 末日, 月末, 最終日, 月の最終日, 月の末日; T: 正午; 零時; P: 午前, 朝の; 午後, 夜の; R: 朝, 午前中; 昼; 夕方; 晩; 夜; e1 u2 p9: 毎朝; e1 u2 p19: 毎晩; s: の, または末日, は; S: に
        N: この, その; g: と, ・; G: から; L: まで, までに, 以降, 前, 以外, または, か, 先週, 先月, 来月, 回
    """,
    "ar": """
        n: واحد, واحدة; ; ثلاث, ثلاثة; أربع, أربعة; خمس, خمسة; ست, ستة; سبع, سبعة; ثمان, ثماني, ثمانية; تسع, تسعة; عشر, عشرة
        n15: خمس عشرة; n20: عشرين; n30: ثلاثين; n45: خمس وأربعين; n2 u1: ساعتين; n2 M: دقيقتين; n2 u2: يومين; n2 u3: أسبوعين; n2 u4: شهرين; n2 u5: سنتين, عامين; h: نصف ساعة; ربع ساعة; H: ونصف, والنصف
        u: ثانية, ثوان, ثوانٍ; ساعة, ساعات; أيام, يوما; أسبوع, أسابيع, أسبوعا; شهر, أشهر, شهرا, شهور; سنة, سنوات, عام, أعوام; M: دقيقة, دقائق
        n1 u1: ساعة واحدة; i: بعد, خلال; e: كل; v: كل ساعة; يوميا; أسبوعيا; شهريا; سنويا; r: اليوم; غدا, غد; بعد غد, بعد الغد
        r0 p19: الليلة, هذا المساء; w: الاثنين, اثنين; الثلاثاء, ثلاثاء; الأربعاء, أربعاء; الخميس, خميس; الجمعة, جمعة; السبت, سبت; الأحد, أحد
        b: يوم عمل; نهاية أسبوع; B: كل أيام العمل, أيام العمل; كل نهاية أسبوع; X: الأسبوع القادم, الأسبوع المقبل, من الأسبوع القادم
        m: يناير, كانون الثاني; فبراير, شباط; مارس, آذار; أبريل, إبريل, نيسان; مايو, أيار; يونيو, حزيران; يوليو, تموز; أغسطس, آب; سبتمبر, أيلول; أكتوبر, تشرين الأول; نوفمبر, تشرين الثاني; ديسمبر, كانون الأول
        J: آخر يوم, آخر يوم من الشهر, نهاية الشهر; O: يوم, اليوم :, في اليوم, في يوم; a: الساعة, في الساعة, عند الساعة, عند; P: ص; م
        T: ظهرا; منتصف الليل; p: الصباح; الظهر; ; المساء; الليل; R: صباحا, في الصباح; ; عصرا, بعد الظهر; مساء, في المساء; ليلا; s: في, من, أو آخر يوم, أو اليوم الأخير
        N: هذا, هذه; g: و; G: إلى; L: أو, حتى, قبل, منذ, ما عدا, الماضي, الماضية, القادم, القادمة, المقبل, مرة, مرات
    """,
}
