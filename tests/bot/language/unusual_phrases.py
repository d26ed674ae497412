"""Phrases with misspelled words, abbreviations, lists, ends and exceptions: phrase | rule | rest, as in ``spoken_phrases``."""

UNUSUAL_TIMES = {
    "berlin": """
        evry friday at 3pm yoga | every 1 weeks from 2026-02-13 15:00 | yoga
        eevry monday at 7am yoga | every 1 weeks from 2026-02-16 07:00 | yoga
        jedn Sonntag um 18 Uhr Oma | every 1 weeks from 2026-02-15 18:00 | Oma
        jdn Montag um 9 Oma |  |
        evr friday at 9 yoga |  |
        jeden tga um 8 Tabletten |  |
        taeglich um 7:30 Uhr Tabletten | every 1 days from 2026-02-12 07:30 | Tabletten
        dayli at 9 am check mail | every 1 days from 2026-02-12 09:00 | check mail
        alle 2 Wochn am Montag um 9 Tonne | every 2 weeks from 2026-02-16 09:00 | Tonne
        every 2 weks on Monday at 9 bins | every 2 weeks from 2026-02-16 09:00 | bins
        ale 2 Wochen am Montag um 9 Tonne |  |
        jew. Montag um 9 Tonne |  |
        swim on Mondyas at 9 | every 1 weeks from 2026-02-16 09:00 | swim
        everyday at 6 pm walk | every 1 days from 2026-02-11 18:00 | walk
        buy dairy at 9 | 2026-02-11 21:00 | buy dairy
        I read every single day at 8 pm | every 1 days from 2026-02-11 20:00 | I read
        every full moon at 9 dance |  |
        dance at 9 every school day |  |
        regularly at 9 yoga |  |
        on Thurday at 9 yoga | 2026-02-12 09:00 | yoga
        immer am 1. des Monats Miete | every 1 months from 2026-03-01 09:00 | Miete
        am Monatsletzten um 16 Uhr immer Kasse | cron 0 16 L * * | Kasse
        am Wochenende immer um 11 Hamster | cron 0 11 * * 0,6 | Hamster
        am Wochenende um 11 Hamster |  |
        freitags immer um 15 Uhr Hamster | every 1 weeks from 2026-02-13 15:00 | Hamster
        Ende des Monats Bericht | 2026-02-28 09:00 | Bericht
        at the end of the month report | 2026-02-28 09:00 | report
        at the end of every month at 5pm report | cron 0 17 L * * | report
        Ende jedes Monats um 10 Uhr Bericht | cron 0 10 L * * | Bericht
        at the end of the week report |  |
        Anfang des Monats um 9 Miete |  |
        Mo, Mi, Fr 6:30 Laufen | cron 30 6 * * 1,3,5 | Laufen
        Mo-Fr 7:15 Wecker | cron 15 7 * * 1-5 | Wecker
        Mon - Thu at 8am school run | cron 0 8 * * 1,2,3,4 | school run
        Di/Do 18:30 Training |  |
        Tuesday, Wednesday and Friday at 6:15 pm swimming | cron 15 18 * * 2,3,5 | swimming
        next Monday, Tuesday and Wednesday at 9 swimming |  |
        move it from Monday to Wednesday at 10 |  |
        Do 10 Uhr Werkstatt | 2026-02-12 10:00 | Werkstatt
        Do 10 pushups tomorrow at 7am | 2026-02-12 07:00 | Do 10 pushups
        Thu 10am garage | 2026-02-12 10:00 | garage
        Thu, Dec 3 at 10am vote | 2026-12-03 10:00 | vote
        So 10:30 Kirche | 2026-02-15 10:30 | Kirche
        so um 10 Uhr Kirche | 2026-02-11 22:00 | so Kirche
        call Mo at 9 | 2026-02-11 21:00 | call Mo
        Fr. Schulz um 9 anrufen | 2026-02-11 21:00 | Fr. Schulz anrufen
        every Tue and Thu at 6pm gym | cron 0 18 * * 2,4 | gym
        30.12. 11h Reinigung | 2026-12-30 11:00 | Reinigung
        um 17h30 los | 2026-02-11 17:30 | los
        work tomorrow 8h |  |
        16 Uhr 20 Bus | 2026-02-11 16:20 | Bus
        alle zwei Wochen mittwochs um 18 Uhr Tonne | every 2 weeks from 2026-02-11 18:00 | Tonne
        alle 14 Tage freitags Tonne | every 2 weeks from 2026-02-13 09:00 | Tonne
        on 12/24 at 4pm goose | 2026-12-24 16:00 | goose
        on 24/12 at 4pm goose | 2026-12-24 16:00 | goose
        on 12/13/2027 goose | 2027-12-13 09:00 | goose
        on 5/6 at 4pm goose |  |
        on 13/13 goose |  |
        open 24/7 |  |
        in 3 Stunden nach dem Sauerteig sehen | 2026-02-11 13:00 | nach dem Sauerteig sehen
        in 2 Stunden nach Hause fahren | 2026-02-11 12:00 | nach Hause fahren
        in 3 Stunden nach dem Essen Tabletten |  |
        every day at 8 take antibiotics for 10 days |  |
        every day at 8 walk for 30 minutes | every 1 days from 2026-02-12 08:00 | walk for 30 minutes
        every Friday at 9 plan for next week | every 1 weeks from 2026-02-13 09:00 | plan for next week
        jeden Tag um 8 Tropfen bis Freitag |  |
        jeden Tag um 8 mindestens 2 bis 3 Liter trinken | every 1 days from 2026-02-12 08:00 | mindestens 2 bis 3 Liter trinken
        täglich um 20 Uhr Salbe, zwei Wochen lang |  |
        every hour drink water until 6pm |  |
        every Monday at 9 plan until Christmas |  |
        every day at 9 water the plants except on Sundays |  |
        every day at 8 run starting Monday |  |
    """,
}

UNUSUAL_REMINDERS = {
    "berlin": """
        I'd like a daily reminder at 13:00 to go outside | every 1 days from 2026-02-11 13:00 | go outside
        set a weekly reminder for Monday at 9am to report | every 1 weeks from 2026-02-16 09:00 | report
        stell mir eine tägliche Erinnerung um 22 Uhr: Zähne | every 1 days from 2026-02-11 22:00 | Zähne
        set up a recurring reminder at 9 to report |  |
        mach mir bitte für 16 Uhr 20 eine Erinnerung: Bus | 2026-02-11 16:20 | Bus
        every day at 8 remind me to take antibiotics for a week |  |
        Tuesday, Wednesday and Friday at 6:15 pm, remind me to swim | cron 15 18 * * 2,3,5 | swim
        remind me to be very careful at 5pm | 2026-02-11 17:00 | be very careful
        remind me to do 10:30 standup notes | 2026-02-11 10:30 | do standup notes
        remind me tomorrow to take my pill every day | 2026-02-12 09:00 | take my pill every day
    """,
}
