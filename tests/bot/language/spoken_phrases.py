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
        dentist tomorrow 14:30 | 2026-02-12 14:30 | dentist
        in 10 min pizza | 2026-02-11 10:10 | pizza
        2026-05-01 08:00 demo | 2026-05-01 08:00 | demo
        next week on Thursday at 11 review | 2026-02-19 11:00 | review
        stand up every hour | every 1 hours from 2026-02-11 11:00 | stand up
        um 17:45 Kinder abholen | 2026-02-11 17:45 | Kinder abholen
        nächste Woche Mittwoch Zahnarzt | 2026-02-18 09:00 | Zahnarzt
        dienstags um 18 Uhr Training | every 1 weeks from 2026-02-17 18:00 | Training
        in einer Woche Reifen wechseln | 2026-02-18 10:00 | Reifen wechseln
        heute Mittag Blumen gießen | 2026-02-11 12:00 | Blumen gießen
        meeting with Tom on Friday at 10:30 | 2026-02-13 10:30 | meeting with Tom
        at 3 in the afternoon call Ann | 2026-02-11 15:00 | call Ann
        call Ann, tomorrow at 15:00! | 2026-02-12 15:00 | call Ann
        jedes Wochenende um 10 Wohnung putzen | cron 0 10 * * 0,6 | Wohnung putzen
        1. Mai 10 Uhr Demo | 2026-05-01 10:00 | Demo
        heute in zwei Stunden Wäsche | 2026-02-11 12:00 | Wäsche
        Mittwoch 18:30 Elternabend | 2026-02-11 18:30 | Elternabend
        morgens um 6 aufstehen | 2026-02-12 06:00 | aufstehen
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
        remind me at 5pm and again at 6pm to leave | |
        remind me in 2 days' time to leave | 2026-02-13 10:00 | leave
        remind me every 1st and 15th of the month to pay | |
        remind me about our 10:30 standup at 10:25 | 2026-02-11 10:25 | our 10:30 standup
        remind me on the 2nd Tuesday of March to vote | |
        erinnere mich täglich um 8 und 20 Uhr an die Tabletten | |
        erinnere mich wöchentlich am Montag an den Bericht | every 1 weeks from 2026-02-16 09:00 | den Bericht
        erinnere mich heute Nachmittag daran, dass ich einkaufen muss | 2026-02-11 15:00 | ich einkaufen muss
        he told me to remind me tomorrow | |
        what is on tomorrow? | |
        erinnere mich, was ich am Montag gesagt habe | |
        kannst du mich morgen um 9 anrufen? | |
        erinnere mich nicht morgen | |
        remind me in 45 minutes to take the bread out of the oven | 2026-02-11 10:45 | take the bread out of the oven
        Remind me to water the plants every Sunday at 10 | every 1 weeks from 2026-02-15 10:00 | water the plants
        please remind me on Thursday at 3pm about the call with Anna | 2026-02-12 15:00 | the call with Anna
        can you remind me tomorrow evening to lock the shed? | 2026-02-12 19:00 | lock the shed
        could you please remind me at 6:15 pm that the laundry is done | 2026-02-11 18:15 | the laundry is done
        set a reminder for Saturday at noon: lunch with Tom | 2026-02-14 12:00 | lunch with Tom
        remind me in two and a half hours to stretch | 2026-02-11 12:30 | stretch
        remind me in three days to check the mail | 2026-02-14 10:00 | check the mail
        remind me on March 21st at 8:30am to renew the passport | 2026-03-21 08:30 | renew the passport
        remind me every weekday at 8:45 to join the standup | cron 45 8 * * 1-5 | join the standup
        remind me next Tuesday to pay rent | 2026-02-17 09:00 | pay rent
        remind me at quarter past four to pick up Emma | 2026-02-11 16:15 | pick up Emma
        remind me to breathe every 90 minutes | every 90 minutes from 2026-02-11 11:30 | breathe
        remind me tonight at 9 to call mom | 2026-02-11 21:00 | call mom
        remind me on the 1st of every month to pay the rent | every 1 months from 2026-03-01 09:00 | pay the rent
        hey, remind me the day after tomorrow at 7 to pack | 2026-02-13 07:00 | pack
        remind me every other Friday at 4pm to submit my timesheet | every 2 weeks from 2026-02-13 16:00 | submit my timesheet
        remind me what we talked about yesterday |  |
        remind me to send the invoice by Friday |  |
        don't remind me tomorrow |  |
        remind me on 30 February to dance |  |
        remind me in half an hour to turn off the heating | 2026-02-11 10:30 | turn off the heating
        remind me twice a day to drink water |  |
        remind me tomorrow at 25:00 to sleep |  |
        remind me every year on 24 December at 18:00 to call grandma | every 1 years from 2026-12-24 18:00 | call grandma
        erinnere mich in 10 Minuten an den Tee | 2026-02-11 10:10 | den Tee
        Erinnere mich bitte am Freitag um 15 Uhr daran, Blumen zu kaufen | 2026-02-13 15:00 | Blumen zu kaufen
        kannst du mich morgen früh an die Tabletten erinnern? | 2026-02-12 09:00 | die Tabletten
        erinner mich jeden Tag um 22 Uhr, die Tür abzuschließen | every 1 days from 2026-02-11 22:00 | die Tür abzuschließen
        bitte erinnere mich übermorgen um halb neun an das Meeting | 2026-02-13 08:30 | das Meeting
        erinnere mich in anderthalb Stunden, dass der Kuchen fertig ist | 2026-02-11 11:30 | der Kuchen fertig ist
        erinnere mich heute Abend um 8 an den Müll | 2026-02-11 20:00 | den Müll
        erinnere mich jeden ersten Montag im Monat um 10 an das Backup | cron 0 10 * * 1#1 | das Backup
        erinnere mich am 24.12. um 16 Uhr an die Kirche | 2026-12-24 16:00 | die Kirche
        erinnere mich werktags um 7:15 ans Aufstehen | cron 15 7 * * 1-5 | Aufstehen
        erinnere mich alle zwei Wochen am Donnerstag an die gelbe Tonne | every 2 weeks from 2026-02-12 09:00 | die gelbe Tonne
        stell eine Erinnerung für Samstag 11 Uhr: Auto waschen | 2026-02-14 11:00 | Auto waschen
        erinnere mich gestern an die Post |  |
        erinnere mich bis Freitag an den Bericht |  |
        erinnere mich kommenden Montag um Viertel vor acht an den Arzt | 2026-02-16 07:45 | den Arzt
        yo remind me in like 20 min to move the car | 2026-02-11 10:20 | move the car
        Remind me, tomorrow at 8 a.m., to feed the cat | 2026-02-12 08:00 | feed the cat
        remind me to take my pills every day at 8am and 8pm |  |
        remind me of Anna's birthday on June 5 | 2026-06-05 09:00 | Anna's birthday
        remind me on Sunday night to put the bins out | 2026-02-15 21:00 | put the bins out
        remind me first thing tomorrow to call the bank | 2026-02-12 09:00 | call the bank
        remind me at 7 tomorrow morning to go running | 2026-02-12 07:00 | go running
        remind me in an hour to check if the package arrived at 5 Main Street | 2026-02-11 11:00 | check if the package arrived at 5 Main Street
        remind me to buy milk |  |
        remind me on 12/05 to renew |  |
        remind me every Tuesday and Thursday at 6:30 pm to go to practice | cron 30 18 * * 2,4 | go to practice
        remind me a week from today to reply to Sam | 2026-02-18 10:00 | reply to Sam
        remind me at the end of the month to send invoices | 2026-02-28 09:00 | send invoices
        remind me every 15 minutes to look up | every 15 minutes from 2026-02-11 10:15 | look up
        remind me every quarter to file taxes |  |
        remind me the night before the exam |  |
        remind me on Feb 20 to buy flowers | 2026-02-20 09:00 | buy flowers
        remind me in the evening to read | 2026-02-11 19:00 | read
        remind me 10 minutes before the meeting at 3pm |  |
        remind me about the dentist appointment on Monday at 2pm | 2026-02-16 14:00 | the dentist appointment
        remind me to vote on November 3rd, 2026 at 8am | 2026-11-03 08:00 | vote
        remind me in 2 hours, 30 minutes to rotate the meat | 2026-02-11 12:30 | rotate the meat
        remind me not to call Bob tomorrow | 2026-02-12 09:00 | not to call Bob
        remind me at 1700 to leave |  |
        remind me in a second to laugh |  |
        Can you set me a reminder to stretch in 5 minutes? | 2026-02-11 10:05 | stretch
        remind me on weekdays at 7 to wake the kids | cron 0 7 * * 1-5 | wake the kids
        remind me every Monday through Friday at 9 to log in | cron 0 9 * * 1-5 | log in
        erinner mich mal in ner halben Stunde an die Pizza | 2026-02-11 10:30 | die Pizza
        Erinnere mich um kurz vor 8 an die Tagesschau |  |
        erinnere mich morgen gegen 14 Uhr an den Anruf | 2026-02-12 14:00 | den Anruf
        erinnere mich am Wochenende ans Putzen |  |
        erinnere mich am Montagmorgen um 7 an den Müll | 2026-02-16 07:00 | den Müll
        Erinnere mich bitte jeden 1. des Monats an die Miete | every 1 months from 2026-03-01 09:00 | die Miete
        erinnere mich alle drei Monate an den Filter |  |
        erinnere mich in zwei Tagen um 18:30 Uhr an den Elternabend | 2026-02-13 18:30 | den Elternabend
        erinnere mich am Dienstag in einer Woche an den Friseur |  |
        würdest du mich bitte um 12 an das Mittagessen erinnern | 2026-02-11 12:00 | das Mittagessen
        erinnere mich heute um 18 Uhr, Mama anzurufen | 2026-02-11 18:00 | Mama anzurufen
        erinnere mich jeden Sonntagabend an die Mülltonne | every 1 weeks from 2026-02-15 19:00 | die Mülltonne
        erinnere mich nächste Woche Freitag um 9 an den TÜV | 2026-02-20 09:00 | den TÜV
        erinnere mich in 3 Monaten an die Kündigung | 2026-05-11 10:00 | die Kündigung
        remind me to call Anna at 5 and Bob at 6 |  |
        remind me to pick up Emma from school at 3:30 | 2026-02-11 15:30 | pick up Emma from school
        remind me tomorrow at noon that lunch is at 12:30 | 2026-02-12 12:00 | lunch is at 12:30
        remind me in 5 |  |
        remind me every weekday except Friday at 9 to log in |  |
        remind me every day for a week to take antibiotics at 8 |  |
        remind me each Monday at 9am about the weekly report | every 1 weeks from 2026-02-16 09:00 | the weekly report
        remind me every 4 hours to take ibuprofen | every 4 hours from 2026-02-11 14:00 | take ibuprofen
        remind me every 4 hours starting at 8 to take ibuprofen |  |
        remind me on Saturday and Sunday at 10 to relax |  |
        remind me Monday at 9 and 5 to stretch |  |
        remind me a day before Anna's birthday on 5 June |  |
        remind me tomorrow night at 11:30 to lock up | 2026-02-12 23:30 | lock up
        remind me the 20th of this month to pay |  |
        remind me when the game starts |  |
        remind me if it rains tomorrow |  |
        remind me at sunset to take photos |  |
        remind me on my birthday |  |
        remind me in 2027 to renew |  |
        remind me in March to renew |  |
        remind me next month on the 3rd to renew |  |
        remind me at 5:30pm today to pick up the cake | 2026-02-11 17:30 | pick up the cake
        remind me that I have to pay 50 euros to Tom tomorrow | 2026-02-12 09:00 | I have to pay 50 euros to Tom
        remind me every third Thursday of the month at 7pm of book club | cron 0 19 * * 4#3 | book club
        remind me at 8 tonight to watch the movie at 9 | 2026-02-11 20:00 | watch the movie at 9
        remind me to do the thing in room 5 at 14:00 | 2026-02-11 14:00 | do the thing in room 5
        remind me 3 hours from now to eat | 2026-02-11 13:00 | eat
        remind me at 9 to call Ann on Friday |  |
        remind me last Friday to call |  |
        remind me Thursday 19 Feb at 4pm to call | 2026-02-19 16:00 | call
        erinnere mich um 9 und um 17 Uhr an die Tabletten |  |
        erinnere mich jeden Tag außer Sonntag um 8 |  |
        erinnere mich nach der Arbeit an den Einkauf |  |
        erinnere mich eine Stunde vor dem Meeting um 15 Uhr |  |
        erinnere mich in der Früh an die Post | 2026-02-12 09:00 | die Post
        erinnere mich am 15. an die Steuer | 2026-02-15 09:00 | die Steuer
        erinnere mich am 15. Februar 2027 um 8:30 Uhr an die Steuer | 2027-02-15 08:30 | die Steuer
        erinnere mich Ende des Monats an die Rechnung | 2026-02-28 09:00 | die Rechnung
        erinnere mich am Dienstagnachmittag an das Paket | 2026-02-17 15:00 | das Paket
        erinnere mich ab Montag jeden Tag um 8 an Vitamine |  |
        erinnere mich von Montag bis Freitag um 8 an Vitamine | cron 0 8 * * 1-5 | Vitamine
        erinnere mich alle 14 Tage freitags an den Müll | every 2 weeks from 2026-02-13 09:00 | den Müll
        erinnere mich jeden zweiten Freitag um 7 an den Müll | every 2 weeks from 2026-02-13 07:00 | den Müll
        erinnere mich heute Nacht um 2 an den Meteorschauer |  |
        erinnere mich morgen in einer Stunde |  |
        erinnere mich, wenn es 17 Uhr ist |  |
        erinnere mich jeden Monat am letzten Tag an die Miete | cron 0 9 L * * | die Miete
        erinnere mich jeden Dienstag und Donnerstag um 18:30 ans Training | cron 30 18 * * 2,4 | Training
        erinnere mich zweimal am Tag |  |
        Erinnere mich am Donnerstag den 19.2. um 8 Uhr an den Arzt | 2026-02-19 08:00 | den Arzt
    """,
}
