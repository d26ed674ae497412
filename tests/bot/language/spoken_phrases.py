"""Phrases in which people say times, what they mean, and what is left of them: phrase | rule | rest.

A rule is a local time, "every COUNT UNIT from LOCAL TIME", "cron EXPRESSION", or nothing for "no time for sure".
"""

NOWS = {
    "berlin": ("2026-02-11T10:00", "Europe/Berlin"),  # a Wednesday
    "late": ("2026-02-14T21:30", "America/New_York"),  # a Saturday
    "spring": (
        "2026-03-28T12:00",
        "Europe/Berlin",
    ),  # the clocks jump from two to three in the night
    "new year": ("2026-12-31T23:50", "Asia/Kolkata"),
}

TIMES = {
    "berlin": """
        in 20 minutes tea | 2026-02-11 10:20 | tea
        tea in 20 minutes | 2026-02-11 10:20 | tea
        in an hour and a half check the oven | 2026-02-11 11:30 | check the oven
        check the oven in 1 hour 30 minutes | 2026-02-11 11:30 | check the oven
        in 1h 15m leave | 2026-02-11 11:15 | leave
        in 90min leave | 2026-02-11 11:30 | leave
        in a quarter of an hour leave | 2026-02-11 10:15 | leave
        in an hour leave | 2026-02-11 11:00 | leave
        in 1.5 hours leave | 2026-02-11 11:30 | leave
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
        every last Friday of the month at 4pm pay | cron 0 16 * * 5L | pay
        the second Tuesday of every month at 10 pay | cron 0 10 * * 2#2 | pay
        every 3 March congratulate Ann | every 1 years from 2026-03-03 09:00 | congratulate Ann
        every hour stretch | every 1 hours from 2026-02-11 11:00 | stretch
        every half hour stretch | every 30 minutes from 2026-02-11 10:30 | stretch
        at noon stretch | 2026-02-11 12:00 | stretch
        at midnight stretch | 2026-02-12 00:00 | stretch
        half past six stretch | 2026-02-11 18:30 | stretch
        at quarter to nine stretch | 2026-02-11 20:45 | stretch
        at ten to six stretch | 2026-02-11 17:50 | stretch
        the day after tomorrow stretch | 2026-02-13 09:00 | stretch
        in the morning stretch | 2026-02-12 09:00 | stretch
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
        am letzten Freitag jeden Monats um 16 Uhr Bericht | cron 0 16 * * 5L | Bericht
        übermorgen früh Bericht | 2026-02-13 09:00 | Bericht
        am 3. März um 9 Uhr Bericht | 2026-03-03 09:00 | Bericht
        am 3.3. um 9 Bericht | 2026-03-03 09:00 | Bericht
        am 03.03.2027 Bericht | 2027-03-03 09:00 | Bericht
        am Montag, den 2. März, um 14 Uhr Bericht | 2026-03-02 14:00 | Bericht
        heute Abend Bericht | 2026-02-11 19:00 | Bericht
        Freitagabend um 9 Kino | 2026-02-13 21:00 | Kino
        halb acht Kino | 2026-02-11 19:30 | Kino
        um 5 nach halb 8 Kino | 2026-02-11 19:35 | Kino
        um dreiviertel acht Kino | 2026-02-11 19:45 | Kino
        um 20:15 Uhr Kino | 2026-02-11 20:15 | Kino
        um 15 Uhr Kino | 2026-02-11 15:00 | Kino
        um Mitternacht Kino | 2026-02-12 00:00 | Kino
        nächsten Montag um 10 Kino | 2026-02-16 10:00 | Kino
        am Samstag in der Früh Kino | 2026-02-14 09:00 | Kino
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
        guten Morgen | |
        irgendwann nächste Woche | |
        dreimal täglich Tabletten | |
        vor 3 Tagen | |
        am 31.02. Bericht | |
    """,
    "late": """
        at 9 call Ann | 2026-02-15 09:00 | call Ann
        tonight call Ann | |
        tonight at 11 call Ann | 2026-02-14 23:00 | call Ann
        tomorrow call Ann | 2026-02-15 09:00 | call Ann
        on Saturday call Ann | 2026-02-21 09:00 | call Ann
        next Sunday call Ann | 2026-02-22 09:00 | call Ann
        every Saturday at 9 pm call Ann | every 1 weeks from 2026-02-21 21:00 | call Ann
    """,
    "spring": """
        tomorrow at 2:30 am wake up | 2026-03-29 03:00 | wake up
        in 24 hours wake up | 2026-03-29 13:00 | wake up
        in 1 day wake up | 2026-03-29 12:00 | wake up
    """,
    "new year": """
        in 20 minutes cheer | 2027-01-01 00:10 | cheer
        tomorrow cheer | 2027-01-01 09:00 | cheer
        at midnight cheer | 2027-01-01 00:00 | cheer
        on 29 February cheer | 2028-02-29 09:00 | cheer
    """,
}

REMINDERS = {
    "berlin": """
        remind me tomorrow at 9 to call the dentist | 2026-02-12 09:00 | call the dentist
        Remind me to call the dentist tomorrow at 9. | 2026-02-12 09:00 | call the dentist
        remind me tomorrow to call mom at 5pm | 2026-02-12 17:00 | call mom
        remind me to call mom at 17:00 tomorrow | 2026-02-12 17:00 | call mom
        remind me about the Friday meeting tomorrow at 9 | 2026-02-12 09:00 | the Friday meeting
        remind me about the 5pm meeting in 2 hours | 2026-02-11 12:00 | the 5pm meeting
        remind me tomorrow to submit the report by Friday | 2026-02-12 09:00 | submit the report by Friday
        remind me in 10 minutes that the bus leaves at 5 | 2026-02-11 10:10 | the bus leaves at 5
        tomorrow at 9 remind me to call the dentist | 2026-02-12 09:00 | call the dentist
        Hi, could you please remind me at 5pm to stretch? | 2026-02-11 17:00 | stretch
        remind me tomorrow at 9 | 2026-02-12 09:00 |
        set a reminder for tomorrow at 9 to stretch | 2026-02-12 09:00 | stretch
        I want to be reminded every day at 8 of my pills | every 1 days from 2026-02-12 08:00 | my pills
        erinnere mich morgen um 9 daran, den Zahnarzt anzurufen | 2026-02-12 09:00 | den Zahnarzt anzurufen
        erinnere mich daran, morgen um 9 den Zahnarzt anzurufen | 2026-02-12 09:00 | den Zahnarzt anzurufen
        Kannst du mich bitte morgen um 9 an den Zahnarzt erinnern? | 2026-02-12 09:00 | den Zahnarzt
        ich möchte morgen um 9 an den Zahnarzt erinnert werden | 2026-02-12 09:00 | den Zahnarzt
        morgen um 9 erinnere mich an den Zahnarzt | 2026-02-12 09:00 | den Zahnarzt
        Erinnerst du mich jeden Freitag um 12 an die Blumen? | every 1 weeks from 2026-02-13 12:00 | die Blumen
        remind me what I said on Monday | |
        remind me of the plan | |
        remind me when I get home at 5 | |
        remind me tomorrow at 9 or 10 to stretch | |
        do not remind me tomorrow | |
        he told me to remind me tomorrow | |
        what is on tomorrow? | |
        erinnere mich, was ich am Montag gesagt habe | |
        kannst du mich morgen um 9 anrufen? | |
        erinnere mich nicht morgen | |
    """,
}
