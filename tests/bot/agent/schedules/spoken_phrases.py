"""Phrases in which people say times: what they mean on Wednesday, 11 February 2026 at 10:00 in Berlin, and what is left of them.

A rule is a local time, "every COUNT UNIT from LOCAL TIME", "cron EXPRESSION", or nothing for "no time for sure".
"""

PHRASES = {
    "en": """
        in 20 minutes tea | 2026-02-11 10:20 | tea
        tea in 20 minutes | 2026-02-11 10:20 | tea
        in an hour and a half check the oven | 2026-02-11 11:30 | check the oven
        check the oven in 1 hour 30 minutes | 2026-02-11 11:30 | check the oven
        in 1h 15m leave | 2026-02-11 11:15 | leave
        in 90min leave | 2026-02-11 11:30 | leave
        in a quarter of an hour leave | 2026-02-11 10:15 | leave
        in an hour leave | 2026-02-11 11:00 | leave
        half an hour from now leave | 2026-02-11 10:30 | leave
        in twenty-five minutes leave | 2026-02-11 10:25 | leave
        in 2 weeks change the filter | 2026-02-25 10:00 | change the filter
        in a month change the filter | 2026-03-11 10:00 | change the filter
        in 3 days at 17:00 change the filter | 2026-02-14 17:00 | change the filter
        tomorrow at 17:00 gym | 2026-02-12 17:00 | gym
        tomorrow 5pm gym | 2026-02-12 17:00 | gym
        gym tomorrow | 2026-02-12 09:00 | gym
        gym at 5pm | 2026-02-11 17:00 | gym
        gym at 5 p.m. | 2026-02-11 17:00 | gym
        gym at 5 | 2026-02-11 17:00 | gym
        gym at 9 | 2026-02-11 21:00 | gym
        gym at 9am | 2026-02-12 09:00 | gym
        gym at 11 o'clock | 2026-02-11 11:00 | gym
        gym at 09:30 | 2026-02-12 09:30 | gym
        tonight call Tom | 2026-02-11 19:00 | call Tom
        call Tom this afternoon | 2026-02-11 15:00 | call Tom
        call Tom tomorrow morning at 8 | 2026-02-12 08:00 | call Tom
        call Tom tomorrow at 8 in the evening | 2026-02-12 20:00 | call Tom
        call Tom tomorrow at 4 | 2026-02-12 16:00 | call Tom
        on Friday call Tom | 2026-02-13 09:00 | call Tom
        call Tom Friday at 3 | 2026-02-13 15:00 | call Tom
        call Tom on Fri at 3 | 2026-02-13 15:00 | call Tom
        on Wednesday call Tom | 2026-02-18 09:00 | call Tom
        on Wednesday at 16:00 call Tom | 2026-02-11 16:00 | call Tom
        next Monday morning call Tom | 2026-02-16 09:00 | call Tom
        next Friday call Tom | 2026-02-20 09:00 | call Tom
        this Friday call Tom | 2026-02-13 09:00 | call Tom
        Friday next week call Tom | 2026-02-20 09:00 | call Tom
        Friday night at 11 party | 2026-02-13 23:00 | party
        on 3 March at 9 dentist | 2026-03-03 09:00 | dentist
        on March 3rd at 9 dentist | 2026-03-03 09:00 | dentist
        on the 3rd of March dentist | 2026-03-03 09:00 | dentist
        on Tuesday, 3 March at 9:15 dentist | 2026-03-03 09:15 | dentist
        on 3 January dentist | 2027-01-03 09:00 | dentist
        on 3 March 2027 dentist | 2027-03-03 09:00 | dentist
        on the 15th dentist | 2026-02-15 09:00 | dentist
        on the 5th dentist | 2026-03-05 09:00 | dentist
        on the 31st dentist | 2026-03-31 09:00 | dentist
        2026-04-01 dentist | 2026-04-01 09:00 | dentist
        every Monday at 8 yoga | every 1 weeks from 2026-02-16 08:00 | yoga
        yoga on Mondays and Thursdays at 18:30 | cron 30 18 * * 1,4 | yoga
        yoga every Monday, Wednesday and Friday at 7 | cron 0 7 * * 1,3,5 | yoga
        every day at 7:30 yoga | every 1 days from 2026-02-12 07:30 | yoga
        yoga every evening at 8 | every 1 days from 2026-02-11 20:00 | yoga
        every morning yoga | every 1 days from 2026-02-12 09:00 | yoga
        daily at noon yoga | every 1 days from 2026-02-11 12:00 | yoga
        every weekday at 9 yoga | cron 0 9 * * 1-5 | yoga
        on weekends at 10 yoga | cron 0 10 * * 0,6 | yoga
        every 2 weeks on Tuesday yoga | every 2 weeks from 2026-02-17 09:00 | yoga
        every second Tuesday yoga | every 2 weeks from 2026-02-17 09:00 | yoga
        every 3 days at 6pm yoga | every 3 days from 2026-02-11 18:00 | yoga
        on the first of every month pay | every 1 months from 2026-03-01 09:00 | pay
        every month on the 20th at 10 pay | every 1 months from 2026-02-20 10:00 | pay
        on the last day of every month pay | cron 0 9 L * * | pay
        the second Tuesday of every month at 10 pay | |
        every 3 March congratulate Ann | every 1 years from 2026-03-03 09:00 | congratulate Ann
        every hour stretch | every 1 hours from 2026-02-11 11:00 | stretch
        every half hour stretch | every 30 minutes from 2026-02-11 10:30 | stretch
        at noon stretch | 2026-02-11 12:00 | stretch
        at midnight stretch | 2026-02-12 00:00 | stretch
        half past six stretch | 2026-02-11 18:30 | stretch
        at quarter to nine stretch | 2026-02-11 20:45 | stretch
        the day after tomorrow stretch | 2026-02-13 09:00 | stretch
        in the morning stretch | 2026-02-12 09:00 | stretch
        soon gym | |
        next week gym | |
        this weekend at 9 gym | |
        in a few minutes gym | |
        last Monday gym | |
        on 30 February gym | |
        on Monday 3 March gym | |
        3 days ago gym | |
        at 25:00 gym | |
        tomorrow at 9 or 10 gym | |
        tomorrow at 9 and on Friday at 10 gym | |
        every day until Friday gym | |
        twice a week gym | |
        every 30 seconds gym | |
        every month gym | |
        today at 8:00 am gym | |
        on 3 January 2026 gym | |
        I have 5 apples | |
        the sun is out and I may go to the second march | |
        he paid at 5 percent | |
        dentist tomorrow 14:30 | 2026-02-12 14:30 | dentist
        in 10 min pizza | 2026-02-11 10:10 | pizza
        2026-05-01 08:00 demo | 2026-05-01 08:00 | demo
        next week on Thursday at 11 review | 2026-02-19 11:00 | review
        stand up every hour | every 1 hours from 2026-02-11 11:00 | stand up
        meeting with Tom on Friday at 10:30 | 2026-02-13 10:30 | meeting with Tom
        at 3 in the afternoon call Ann | 2026-02-11 15:00 | call Ann
        call Ann, tomorrow at 15:00! | 2026-02-12 15:00 | call Ann
        evr friday at 9 yoga | |
        everyday at 6 pm walk | every 1 days from 2026-02-11 18:00 | walk
        buy dairy at 9 | 2026-02-11 21:00 | buy dairy
        I read every single day at 8 pm | every 1 days from 2026-02-11 20:00 | I read
        every full moon at 9 dance | |
        dance at 9 every school day | |
        regularly at 9 yoga | |
        at the end of the month report | 2026-02-28 09:00 | report
        at the end of every month at 5pm report | cron 0 17 L * * | report
        at the end of the week report | |
        school run Mon - Thu at 8am | |
        Tuesday, Wednesday and Friday at 6:15 pm swimming | cron 15 18 * * 2,3,5 | swimming
        next Monday, Tuesday and Wednesday at 9 swimming | |
        move it from Monday to Wednesday at 10 | |
        Do 10 pushups tomorrow at 7am | 2026-02-12 07:00 | Do 10 pushups
        Thu 10am garage | 2026-02-12 10:00 | garage
        Thu, Dec 3 at 10am vote | 2026-12-03 10:00 | vote
        call Mo at 9 | 2026-02-11 21:00 | call Mo
        every Tue and Thu at 6pm gym | cron 0 18 * * 2,4 | gym
        work tomorrow 8h | |
        on 12/24 at 4pm goose | 2026-12-24 16:00 | goose
        on 24/12 at 4pm goose | 2026-12-24 16:00 | goose
        on 12/13/2027 goose | 2027-12-13 09:00 | goose
        on 5/6 at 4pm goose | |
        on 13/13 goose | |
        open 24/7 | |
        in 3 Stunden nach dem Sauerteig sehen | 2026-02-11 13:00 | nach dem Sauerteig sehen
        in 2 Stunden nach Hause fahren | 2026-02-11 12:00 | nach Hause fahren
        every day at 8 take antibiotics for 10 days | every 1 days from 2026-02-12 08:00 | take antibiotics for 10 days
        every day at 8 walk for 30 minutes | every 1 days from 2026-02-12 08:00 | walk for 30 minutes
        every Friday at 9 plan for next week | every 1 weeks from 2026-02-13 09:00 | plan for next week
        every day at 9 water the plants except on Sundays | |
        every day at 8 run starting Monday | |
    """,
    "de": """
        in 1.5 hours leave | 2026-02-11 11:30 | leave
        morgen um 9 Zahnarzt | 2026-02-12 09:00 | Zahnarzt
        morgen um neun Uhr dreißig Zahnarzt | 2026-02-12 09:30 | Zahnarzt
        in einer halben Stunde Zahnarzt | 2026-02-11 10:30 | Zahnarzt
        in einer Viertelstunde Zahnarzt | 2026-02-11 10:15 | Zahnarzt
        in einer Stunde und 10 Minuten Zahnarzt | 2026-02-11 11:10 | Zahnarzt
        in 1,5 Stunden Zahnarzt | 2026-02-11 11:30 | Zahnarzt
        in 14 Tagen um 8 Uhr Zahnarzt | 2026-02-25 08:00 | Zahnarzt
        jeden Montag um 8 Training | every 1 weeks from 2026-02-16 08:00 | Training
        montags und mittwochs um 18 Uhr Training | cron 0 18 * * 1,3 | Training
        jeden Morgen um 7 Training | every 1 days from 2026-02-12 07:00 | Training
        jeden zweiten Tag um 7 Uhr Training | every 2 days from 2026-02-12 07:00 | Training
        täglich um 6:45 Uhr Training | every 1 days from 2026-02-12 06:45 | Training
        alle 2 Stunden trinken | every 2 hours from 2026-02-11 12:00 | trinken
        stündlich trinken | every 1 hours from 2026-02-11 11:00 | trinken
        jede halbe Stunde trinken | every 30 minutes from 2026-02-11 10:30 | trinken
        am Ersten jedes Monats Miete | every 1 months from 2026-03-01 09:00 | Miete
        jeden Monat am 15. Miete | every 1 months from 2026-02-15 09:00 | Miete
        jedes Jahr am 3. März um 8 Anna gratulieren | every 1 years from 2026-03-03 08:00 | Anna gratulieren
        jeden Werktag um 9 Bericht | cron 0 9 * * 1-5 | Bericht
        übermorgen früh Bericht | 2026-02-13 09:00 | Bericht
        am 3. März um 9 Uhr Bericht | 2026-03-03 09:00 | Bericht
        am 3.3. um 9 Bericht | 2026-03-03 09:00 | Bericht
        am 03.03.2027 Bericht | 2027-03-03 09:00 | Bericht
        am Montag, den 2. März, um 14 Uhr Bericht | 2026-03-02 14:00 | Bericht
        heute Abend Bericht | 2026-02-11 19:00 | Bericht
        Freitagabend um 9 Kino | 2026-02-13 21:00 | Kino
        halb acht Kino | 2026-02-11 19:30 | Kino
        um dreiviertel acht Kino | 2026-02-11 19:45 | Kino
        um 20:15 Uhr Kino | 2026-02-11 20:15 | Kino
        um 15 Uhr Kino | 2026-02-11 15:00 | Kino
        um Mitternacht Kino | 2026-02-12 00:00 | Kino
        nächsten Montag um 10 Kino | 2026-02-16 10:00 | Kino
        am Samstag in der Früh Kino | 2026-02-14 09:00 | Kino
        guten Morgen | |
        irgendwann nächste Woche | |
        dreimal täglich Tabletten | |
        vor 3 Tagen | |
        am 31.02. Bericht | |
        um 17:45 Kinder abholen | 2026-02-11 17:45 | Kinder abholen
        nächste Woche Mittwoch Zahnarzt | 2026-02-18 09:00 | Zahnarzt
        dienstags um 18 Uhr Training | every 1 weeks from 2026-02-17 18:00 | Training
        in einer Woche Reifen wechseln | 2026-02-18 10:00 | Reifen wechseln
        heute Mittag Blumen gießen | 2026-02-11 12:00 | Blumen gießen
        jedes Wochenende um 10 Wohnung putzen | cron 0 10 * * 0,6 | Wohnung putzen
        1. Mai 10 Uhr Demo | 2026-05-01 10:00 | Demo
        heute in zwei Stunden Wäsche | 2026-02-11 12:00 | Wäsche
        Mittwoch 18:30 Elternabend | 2026-02-11 18:30 | Elternabend
        morgens um 6 aufstehen | 2026-02-12 06:00 | aufstehen
        jdn Montag um 9 Oma | |
        jeden tga um 8 Tabletten | |
        taeglich um 7:30 Uhr Tabletten | every 1 days from 2026-02-12 07:30 | Tabletten
        ale 2 Wochen am Montag um 9 Tonne | |
        jew. Montag um 9 Tonne | |
        am Wochenende um 11 Hamster | |
        Ende des Monats Bericht | 2026-02-28 09:00 | Bericht
        Ende jedes Monats um 10 Uhr Bericht | cron 0 10 L * * | Bericht
        Anfang des Monats um 9 Miete | |
        Mo, Mi, Fr 6:30 Laufen | cron 30 6 * * 1,3,5 | Laufen
        Wecker täglich Mo-Fr 7:15 | |
        Di/Do 18:30 Training | |
        Do 10 Uhr Werkstatt | 2026-02-12 10:00 | Werkstatt
        So 10:30 Kirche | 2026-02-15 10:30 | Kirche
        30.12. 11h Reinigung | 2026-12-30 11:00 | Reinigung
        um 17h30 los | 2026-02-11 17:30 | los
        16 Uhr 20 Bus | 2026-02-11 16:20 | Bus
        alle zwei Wochen mittwochs um 18 Uhr Tonne | every 2 weeks from 2026-02-11 18:00 | Tonne
        alle 14 Tage freitags Tonne | every 2 weeks from 2026-02-13 09:00 | Tonne
        jeden Tag um 8 Tropfen bis Freitag | |
        jeden Tag um 8 mindestens 2 bis 3 Liter trinken | every 1 days from 2026-02-12 08:00 | mindestens 2 bis 3 Liter trinken
        täglich um 20 Uhr Salbe, zwei Wochen lang | every 1 days from 2026-02-11 20:00 | Salbe, zwei Wochen lang
    """,
}

MEANINGS = {
    "20": "2026-02-11 10:20",
    "1.5h": "2026-02-11 11:30",
    "2h": "2026-02-11 12:00",
    "tom": "2026-02-12 17:00",
    "today": "2026-02-11 17:00",
    "dat": "2026-02-13 09:00",
    "mon8": "2026-02-16 08:00",
    "Mon8": "every 1 weeks from 2026-02-16 08:00",
    "day8": "every 1 days from 2026-02-12 08:00",
    "wd9": "cron 0 9 * * 1-5",
    "m3": "every 1 months from 2026-03-03 09:00",
    "3h": "every 3 hours from 2026-02-11 13:00",
    "may": "2026-05-03 09:00",
    "may27": "2027-05-03 09:00",
    "2wk": "every 2 weeks from 2026-02-17 09:00",
    "mwf": "cron 0 7 * * 1,3,5",
    "last": "cron 0 9 L * *",
    "y": "every 1 years from 2026-05-03 09:00",
}
"""What the forms below mean, by a name."""

FORMS = {
    "en": """
        20: in 20 minutes
        1.5h: in an hour and a half
        2h: in 2 hours
        tom: tomorrow at 17:00; tomorrow 5pm
        today: today at 17:00
        dat: the day after tomorrow
        mon8: Monday at 8
        Mon8: every Monday at 8
        day8: every day at 8
        wd9: every weekday at 9
        m3: every month on the 3rd at 9
        3h: every 3 hours
        may: on 3 May at 9
        may27: on 3 May 2027 at 9
        2wk: every 2 weeks on Tuesday
        mwf: every Monday, Wednesday and Friday at 7
        last: every month on the last day
        y: every year on 3 May at 9
    """,
    "de": """
        20: in 20 Minuten
        1.5h: in anderthalb Stunden
        2h: in 2 Stunden
        tom: morgen um 17 Uhr; morgen 17:00
        today: heute um 17:00
        dat: übermorgen
        mon8: Montag um 8
        Mon8: jeden Montag um 8
        day8: jeden Tag um 8 Uhr
        wd9: jeden Werktag um 9
        m3: jeden Monat am 3. um 9
        3h: alle 3 Stunden
        may: am 3. Mai um 9
        may27: am 3. Mai 2027 um 9 Uhr
        2wk: alle 2 Wochen am Dienstag
        mwf: jeden Montag, Mittwoch und Freitag um 7
        last: jeden Monat am letzten Tag
        y: jedes Jahr am 3. Mai um 9
    """,
    "fr": """
        20: dans 20 minutes
        1.5h: dans une heure et demie; dans 1h30
        2h: dans 2 heures
        tom: demain à 17h; demain à 17 heures
        today: aujourd'hui à 17:00
        dat: après-demain
        mon8: lundi à 8h; lundi à 8 heures
        Mon8: chaque lundi à 8h; tous les lundis à 8h
        day8: tous les jours à 8h
        wd9: chaque jour de semaine à 9h
        m3: chaque mois, le 3 à 9h; le 3 de chaque mois à 9h
        3h: toutes les 3 heures
        may: le 3 mai à 9h
        may27: le 3 mai 2027 à 9h
        2wk: toutes les 2 semaines le mardi
        mwf: chaque lundi, mercredi et vendredi à 7h
        last: chaque mois, le dernier jour
        y: chaque année le 3 mai à 9h
    """,
    "es": """
        20: en 20 minutos; dentro de 20 minutos
        1.5h: en una hora y media
        2h: en 2 horas
        tom: mañana a las 17:00; mañana a las 5 de la tarde
        today: hoy a las 17:00
        dat: pasado mañana
        mon8: el lunes a las 8
        Mon8: cada lunes a las 8; todos los lunes a las 8
        day8: cada día a las 8; todos los días a las 8
        wd9: cada día laborable a las 9; de lunes a viernes a las 9
        m3: cada mes el día 3 a las 9; el día 3 de cada mes a las 9
        3h: cada 3 horas
        may: el 3 de mayo a las 9
        may27: el 3 de mayo de 2027 a las 9
        2wk: cada 2 semanas, martes
        mwf: cada lunes, miércoles y viernes a las 7
        last: cada mes el último día
        y: cada año el 3 de mayo a las 9
    """,
    "pt": """
        20: em 20 minutos; daqui a 20 minutos
        1.5h: em uma hora e meia
        2h: em 2 horas
        tom: amanhã às 17:00; amanhã às 17h
        today: hoje às 17:00
        dat: depois de amanhã
        mon8: segunda às 8; segunda-feira às 8h
        Mon8: toda segunda às 8; toda segunda-feira às 8h
        day8: todos os dias às 8
        wd9: todo dia útil às 9; em dias úteis às 9
        m3: todo mês no dia 3 às 9
        3h: a cada 3 horas
        may: em 3 de maio às 9; no dia 3 de maio às 9
        may27: 3 de maio de 2027 às 9h
        2wk: a cada 2 semanas, terça-feira
        mwf: toda segunda, quarta e sexta às 7
        last: todo mês no último dia
        y: todos os anos em 3 de maio às 9
    """,
    "it": """
        20: tra 20 minuti; fra 20 minuti
        1.5h: tra un'ora e mezza
        2h: tra 2 ore
        tom: domani alle 17:00; domani alle 17; domani alle 5 del pomeriggio
        today: oggi alle 17:00
        dat: dopodomani
        mon8: lunedì alle 8
        Mon8: ogni lunedì alle 8
        day8: ogni giorno alle 8
        wd9: ogni giorno feriale alle 9
        m3: ogni mese il 3 alle 9; il 3 di ogni mese alle 9
        3h: ogni 3 ore
        may: il 3 maggio alle 9
        may27: il 3 maggio 2027 alle 9
        2wk: ogni 2 settimane, martedì
        mwf: ogni lunedì, mercoledì e venerdì alle 7
        last: ogni mese, l'ultimo giorno
        y: ogni anno il 3 maggio alle 9
    """,
    "ru": """
        20: через 20 минут
        1.5h: через полтора часа
        2h: через 2 часа
        tom: завтра в 17:00; завтра в 5 вечера
        today: сегодня в 17:00
        dat: послезавтра
        mon8: в понедельник в 8
        Mon8: каждый понедельник в 8; по понедельникам в 8
        day8: каждый день в 8; ежедневно в 8
        wd9: по будням в 9; каждый будний день в 9
        m3: каждый месяц 3 числа в 9; 3-го числа каждого месяца в 9
        3h: каждые 3 часа
        may: 3 мая в 9; 3 мая в 9 утра
        may27: 3 мая 2027 года в 9
        2wk: каждые 2 недели, вторник
        mwf: по понедельникам, средам и пятницам в 7
        last: каждый месяц в последний день
        y: каждый год 3 мая в 9
    """,
    "uk": """
        20: через 20 хвилин; за 20 хвилин
        1.5h: через півтори години
        2h: через 2 години
        tom: завтра о 17:00; завтра о 5 вечора
        today: сьогодні о 17:00
        dat: післязавтра
        mon8: у понеділок о 8
        Mon8: щопонеділка о 8; кожного понеділка о 8
        day8: щодня о 8; кожного дня о 8
        wd9: щобудня о 9
        m3: щомісяця 3 числа о 9; 3-го числа кожного місяця о 9
        3h: кожні 3 години
        may: 3 травня о 9
        may27: 3 травня 2027 року о 9
        2wk: кожні 2 тижні, вівторок
        mwf: щопонеділка, щосереди і щоп'ятниці о 7
        last: щомісяця в останній день
        y: щороку 3 травня о 9
    """,
    "zh": """
        20: 20分钟后; 二十分钟后
        1.5h: 一个半小时后
        2h: 2小时后; 两个小时后
        tom: 明天17:00; 明天下午5点; 明天下午五点
        today: 今天17点
        dat: 后天
        mon8: 周一8点; 星期一早上8点
        Mon8: 每周一8点; 每星期一上午8点
        day8: 每天8点
        wd9: 每个工作日9点
        m3: 每月3号9点; 每个月3日9点
        3h: 每3小时; 每隔3个小时
        may: 5月3日9点; 五月三日上午九点
        may27: 2027年5月3日9点
        2wk: 每2周星期二
        mwf: 每周一、周三和周五7点
        last: 每月最后一天
        y: 每年5月3日9点
    """,
    "ja": """
        20: 20分後; 20分後に
        1.5h: 1時間半後
        2h: 2時間後
        tom: 明日17:00; 明日の17時に; 明日午後5時
        today: 今日の17時
        dat: 明後日
        mon8: 月曜日の8時; 月曜8時に
        Mon8: 毎週月曜日8時; 毎週月曜日の8時に
        day8: 毎日8時
        wd9: 平日毎日9時
        m3: 毎月3日9時
        3h: 3時間ごと; 3時間ごとに
        may: 5月3日9時; 5月3日午前9時
        may27: 2027年5月3日の9時
        2wk: 2週間ごと、火曜日
        mwf: 毎週月曜日、水曜日、金曜日7時
        last: 毎月末日
        y: 毎年5月3日の9時
    """,
    "ar": """
        20: بعد 20 دقيقة
        1.5h: بعد ساعة ونصف
        2h: بعد ساعتين; بعد 2 ساعة
        tom: غدا الساعة 17:00; غدًا الساعة 5 مساءً
        today: اليوم الساعة 17:00
        dat: بعد غد
        mon8: الاثنين الساعة 8; يوم الاثنين الساعة 8 صباحًا
        Mon8: كل يوم اثنين الساعة 8; كل اثنين الساعة 8
        day8: كل يوم الساعة 8; يوميًا الساعة 8 صباحا
        wd9: كل أيام العمل الساعة 9
        m3: كل شهر في اليوم 3 الساعة 9
        3h: كل 3 ساعات
        may: 3 مايو الساعة 9
        may27: في 3 مايو 2027 الساعة 9
        2wk: كل أسبوعين يوم الثلاثاء
        mwf: كل أسبوع (الاثنين والأربعاء والجمعة) الساعة 7
        last: كل شهر في آخر يوم
        y: كل سنة في 3 مايو الساعة 9
    """,
}
"""The forms that each language has: name: form; form."""
