"""What a person said carries a claim, or it does not and the reason is told, in many languages."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.gate.claim_support import (
    best_supporting_sentences,
    sentences_with_quote,
    unsupported_reason,
    word_overlap,
)

FRIDAY = date(2026, 3, 6)
HONEST = [
    json.loads(line)
    for line in (Path(__file__).parent / "honest_statements.jsonl").read_text("utf-8").splitlines()
]

# Kind, what was said, a claim that it does not carry.
NOT_CARRIED = [
    ("name", "I moved to Oslo.", "The user moved to Bergen."),
    ("name", "My sister Anna lives in Rome.", "The user's sister Maria lives in Rome."),
    ("name", "I work at Siemens.", "The user works at Bosch."),
    ("name", "I have a cat named Miso.", "The user has a cat named Tofu."),
    ("name", "Call me Max.", "The user wants to be called Moritz."),
    ("name", "Ich wohne in Berlin.", "Der Nutzer wohnt in Hamburg."),
    ("name", "Ich wohne in Berlin.", "The user lives in Munich."),
    ("name", "J'habite à Lyon.", "The user lives in Nantes."),
    ("name", "Vivo en Sevilla.", "El usuario vive en Valencia."),
    ("name", "Abito a Milano.", "L'utente abita a Torino."),
    ("name", "Moro em Lisboa.", "O usuário mora em Braga."),
    ("name", "Я живу в Осло.", "Пользователь живёт в Риме."),
    ("name", "Я живу в Осло.", "The user lives in Rome."),
    ("name", "My email is ada@example.org.", "The user's email is eve@example.org."),
    ("name", "I read https://example.org/a daily.", "The user reads https://evil.example/b daily."),
    ("name", "I take vitamin B12.", "The user takes vitamin D3."),
    ("name", "I studied at MIT.", "The user studied at ETH."),
    ("name", "I like trains.", "The user likes trains and works for NASA."),
    ("name", "I like @ada on the forum.", "The user likes @eve on the forum."),
    ("name", "I live in Austria.", "The user lives in Australia."),
    ("name", "My wife is Christina.", "The user's wife is Christian."),
    ("name", "Mein Hund heißt Bello.", "Die Katze des Nutzers heißt Bello."),
    ("name", "She is nice.", "Anna is nice."),
    ("number", "I'm 34.", "The user is 43 years old."),
    ("number", "My budget is 1,500 euros.", "The user's budget is 15000 euros."),
    ("number", "I have two kids.", "The user has three kids."),
    ("number", "I run 10 km every Sunday.", "The user runs 12 km every Sunday."),
    ("number", "Ich bin zweiundvierzig.", "The user is 24 years old."),
    ("number", "J'ai trente-deux ans.", "The user is 33 years old."),
    ("number", "Tengo veintiocho años.", "The user is 27 years old."),
    ("number", "Ho quarantacinque anni.", "The user is 54 years old."),
    ("number", "Tenho vinte e dois anos.", "The user is 32 years old."),
    ("number", "Мне двадцать семь лет.", "The user is 26 years old."),
    ("number", "我今年三十四岁。", "用户今年四十三岁。"),
    ("number", "二十八歳です。", "ユーザーは38歳です。"),
    ("number", "My train leaves at 7:45.", "The user's train leaves at 8:45."),
    ("number", "I get up at 6 am.", "The user gets up at 18:00."),
    ("number", "I weigh 72.5 kg.", "The user weighs 75.2 kg."),
    ("number", "I drive a 2015 Honda Civic.", "The user drives a 2016 Honda Civic."),
    ("number", "I have a dozen hens.", "The user has 20 hens."),
    ("number", "My phone is 0170 1234567.", "The user's phone is 0170 7654321."),
    ("date", "My birthday is on March 14.", "The user's birthday is on March 15."),
    ("date", "My birthday is on March 14.", "The user's birthday is on April 14."),
    ("date", "I moved in 2019.", "The user moved in 2018."),
    ("date", "The exam is tomorrow, I am nervous.", "The user has an exam on 2026-03-09."),
    ("date", "I fly to Oslo next week.", "The user flies to Oslo on 2026-04-20."),
    ("date", "I start on Monday.", "The user starts on Tuesday."),
    ("date", "I started two years ago.", "The user started in 2021."),
    ("date", "Ich fliege morgen.", "The user flies on 2026-03-10."),
    ("date", "Am 3. März habe ich Geburtstag.", "The user's birthday is on May 3."),
    ("date", "Mon anniversaire est le 12 mai.", "The user's birthday is June 12."),
    ("date", "Mi cumpleaños es el 5 de mayo.", "The user's birthday is on May 6."),
    ("date", "Мой день рождения 9 июня.", "The user's birthday is on July 9."),
    ("date", "誕生日は3月14日です。", "ユーザーの誕生日は4月14日です。"),
    ("date", "我的生日是5月12日。", "用户的生日是5月13日。"),
    ("date", "I live in Oslo.", "The user lives in Oslo since 2024."),
    ("date", "I live in Oslo.", "The user lives in Oslo (said on 2025-01-01)."),
    ("negation", "I am not allergic to nuts.", "The user is allergic to nuts."),
    ("negation", "I don't live in Rome.", "The user lives in Rome."),
    ("negation", "I moved to Oslo, not to Rome.", "The user moved to Rome."),
    ("negation", "I do not live in Rome but in Oslo.", "The user lives in Rome."),
    ("negation", "I no longer work at Nokia.", "The user works at Nokia."),
    ("negation", "I used to work at Nokia.", "The user works at Nokia."),
    ("negation", "I never smoke.", "The user smokes."),
    ("negation", "I stopped smoking.", "The user smokes."),
    ("negation", "I love cheese.", "The user does not love cheese."),
    ("negation", "I live in Rome.", "The user no longer lives in Rome."),
    ("negation", "I don't like dogs.", "The user likes dogs."),
    ("negation", "I hate cheese.", "The user likes cheese."),
    ("negation", "I like cheese.", "The user dislikes cheese."),
    ("negation", "I have no siblings.", "The user has siblings."),
    (
        "negation",
        "My sister Anna isn't allergic to nuts.",
        "The user's sister Anna is allergic to nuts.",
    ),
    ("negation", "Rome is not where I live.", "The user lives in Rome."),
    ("negation", "I can't speak French.", "The user can speak French."),
    ("negation", "Ich bin nicht allergisch gegen Nüsse.", "The user is allergic to nuts."),
    ("negation", "Ich bin nicht allergisch gegen Nüsse.", "Der Nutzer ist allergisch gegen Nüsse."),
    ("negation", "Ich mag Käse nicht.", "Der Nutzer mag Käse."),
    ("negation", "Ich wohne nicht in Rom, sondern in Oslo.", "Der Nutzer wohnt in Rom."),
    ("negation", "Ich esse kein Fleisch.", "Der Nutzer isst Fleisch."),
    ("negation", "Ich rauche nicht mehr.", "The user smokes."),
    ("negation", "Je ne mange pas de viande.", "L'utilisateur mange de la viande."),
    ("negation", "Je n'habite plus à Lyon.", "The user lives in Lyon."),
    ("negation", "No vivo en Roma.", "El usuario vive en Roma."),
    ("negation", "Ya no trabajo en Telefónica.", "El usuario trabaja en Telefónica."),
    ("negation", "Non mangio carne.", "L'utente mangia carne."),
    ("negation", "Não como carne.", "O usuário come carne."),
    ("negation", "Я не живу в Риме.", "Пользователь живёт в Риме."),
    ("negation", "Мяса я не ем.", "Пользователь ест мясо."),
    ("negation", "Я не живу в Риме.", "The user lives in Rome."),
    ("negation", "我不吃肉。", "用户吃肉。"),
    ("negation", "我没有狗。", "用户有狗。"),
    ("negation", "私は肉を食べません。", "ユーザーは肉を食べます。"),
    ("negation", "저는 고기를 안 먹어요.", "사용자는 고기를 먹어요."),
    ("negation", "Nie jem mięsa.", "The user eats meat."),
    ("negation", "I moved to Rome, not to Oslo.", "The user moved to Oslo, not to Rome."),
    ("negation", "I left Acme.", "The user works at Acme."),
    ("question", "Do I live in Rome?", "The user lives in Rome."),
    ("question", "Am I allergic to nuts?", "The user is allergic to nuts."),
    ("question", "I live in Rome, right?", "The user lives in Rome."),
    ("question", "What is my sister Anna's birthday?", "The user's sister is named Anna."),
    ("question", "Should I move to Oslo?", "The user moved to Oslo."),
    ("question", "do i live in rome", "The user lives in Rome."),
    ("question", "I was wondering, do I like jazz?", "The user likes jazz."),
    ("question", "Wohne ich in Berlin?", "Der Nutzer wohnt in Berlin."),
    ("question", "Wo wohnt meine Schwester Anna?", "The user's sister is called Anna."),
    ("question", "Est-ce que j'habite à Lyon ?", "The user lives in Lyon."),
    ("question", "¿Vivo en Sevilla?", "El usuario vive en Sevilla."),
    ("question", "Abito a Milano, vero?", "L'utente abita a Milano."),
    ("question", "Я живу в Осло?", "Пользователь живёт в Осло."),
    ("question", "我住在上海吗？", "用户住在上海。"),
    ("question", "私は東京に住んでいますか？", "ユーザーは東京に住んでいます。"),
    ("hypothesis", "If I lived in Rome, I'd be happy.", "The user lives in Rome."),
    ("hypothesis", "I wish I had a dog.", "The user has a dog."),
    ("hypothesis", "I would live in Rome.", "The user lives in Rome."),
    ("hypothesis", "Imagine I live in Rome and work for NASA.", "The user works for NASA."),
    ("hypothesis", "Suppose I were allergic to nuts.", "The user is allergic to nuts."),
    ("hypothesis", "Let's say I moved to Oslo.", "The user moved to Oslo."),
    ("hypothesis", "I might move to Oslo.", "The user moved to Oslo."),
    ("hypothesis", "I don't know if I'm allergic to nuts.", "The user is allergic to nuts."),
    ("hypothesis", "In my novel I am a pilot in Rome.", "The user is a pilot in Rome."),
    ("hypothesis", "Wenn ich in Rom wohnen würde, wäre ich glücklich.", "The user lives in Rome."),
    ("hypothesis", "Ich hätte gern einen Hund.", "The user has a dog."),
    ("hypothesis", "Si j'habitais à Rome, je serais heureux.", "The user lives in Rome."),
    ("hypothesis", "Ojalá viviera en Roma.", "El usuario vive en Roma."),
    ("hypothesis", "Se vivessi a Roma sarei felice.", "L'utente vive a Roma."),
    ("hypothesis", "Если бы я жил в Риме, я был бы счастлив.", "The user lives in Rome."),
    ("hypothesis", "如果我住在罗马就好了。", "用户住在罗马。"),
    (
        "hypothesis",
        "I'm a millionaire in Monaco, just kidding.",
        "The user is a millionaire in Monaco.",
    ),
    ("reported", "Bob says I live in Rome.", "The user lives in Rome."),
    ("reported", "He told me that I live in Rome.", "The user lives in Rome."),
    ("reported", "She thinks I'm allergic to nuts.", "The user is allergic to nuts."),
    ("reported", "They said I work at Nokia.", "The user works at Nokia."),
    ("reported", "According to Bob I live in Rome.", "The user lives in Rome."),
    ("reported", "You said that I like jazz.", "The user likes jazz."),
    ("reported", "Bob sagt, ich wohne in Rom.", "The user lives in Rome."),
    ("reported", "Bob dit que j'habite à Rome.", "The user lives in Rome."),
    ("reported", "Bob dice que vivo en Roma.", "El usuario vive en Roma."),
    ("reported", "Bob dice che abito a Roma.", "L'utente abita a Roma."),
    ("reported", "Боб говорит, что я живу в Риме.", "Пользователь живёт в Риме."),
    ("reported", "他说我住在罗马。", "用户住在罗马。"),
    ("subject", "My sister lives in Rome.", "The user lives in Rome."),
    ("subject", "My sister lives in Rome.", "The user's brother lives in Rome."),
    ("subject", "Bob lives in Rome.", "The user lives in Rome."),
    ("subject", "I live in Rome.", "The user's sister lives in Rome."),
    ("subject", "She is allergic to nuts.", "The user is allergic to nuts."),
    ("subject", "You live in Rome.", "The user lives in Rome."),
    ("subject", "I have a house, my sister lives in Rome.", "The user lives in Rome."),
    ("subject", "I love my sister. She lives in Rome.", "The user lives in Rome."),
    ("subject", "My boss works at Nokia.", "The user works at Nokia."),
    ("subject", "Meine Schwester wohnt in Rom.", "Der Nutzer wohnt in Rom."),
    ("subject", "Ma sœur vit à Rome.", "L'utilisateur vit à Rome."),
    ("subject", "Mi hermana vive en Roma.", "El usuario vive en Roma."),
    ("subject", "Mia sorella vive a Roma.", "L'utente vive a Roma."),
    ("subject", "Minha irmã mora em Roma.", "O usuário mora em Roma."),
    ("subject", "Моя сестра живёт в Риме.", "Пользователь живёт в Риме."),
    ("subject", "我妹妹住在北京。", "用户住在北京。"),
    ("subject", "妹は大阪に住んでいます。", "ユーザーは大阪に住んでいます。"),
    ("subject", "Anna is nice and I live in Rome.", "Anna lives in Rome."),
    ("subject", "My dog is allergic to chicken.", "The user is allergic to chicken."),
    ("content", "我喜欢狗。", "用户住在上海。"),
    ("content", "犬が好きです。", "ユーザーは東京に住んでいます。"),
    ("mixed", "I want to work at NASA.", "The user works at NASA."),
    ("mixed", "I have a friend in Rome.", "The user's brother is in Rome."),
    ("mixed", "My ex lives in Berlin.", "The user lives in Berlin."),
    ("mixed", "Anna's brother is a pilot.", "The user's brother is a pilot."),
    ("mixed", "Why do people say I am rich?", "The user is rich."),
    ("mixed", "Maybe I'm allergic to cats.", "The user is allergic to cats."),
    ("mixed", "I'm definitely not going to marry Tom.", "The user is going to marry Tom."),
    ("mixed", "It's not true that I live in Rome.", "The user lives in Rome."),
    ("mixed", "I doubt that I live in Rome.", "The user lives in Rome."),
    ("mixed", "Nobody in my family smokes.", "The user's family smokes."),
    ("mixed", "I thought I was allergic to nuts, but I'm not.", "The user is allergic to nuts."),
    ("mixed", 'Translate: "I live in Rome and my name is Bob".', "The user lives in Rome."),
    ("mixed", 'The song goes "I live in Rome".', "The user lives in Rome."),
    ("mixed", "My character in the game is called Zed and I play him.", "The user is called Zed."),
    ("mixed", "Bob: I live in Rome", "The user lives in Rome."),
    ("mixed", "> I live in Rome", "The user lives in Rome."),
    ("mixed", "我朋友住在北京。", "用户住在北京。"),
    ("mixed", "我想住在北京。", "用户住在北京。"),
    ("mixed", "我住在上海。", "用户住在北京。"),
    ("mixed", "他住在北京。", "用户住在北京。"),
    ("mixed", "Él vive en Roma.", "El usuario vive en Roma."),
    ("mixed", "Sie wohnt in Rom.", "Der Nutzer wohnt in Rom."),
    ("mixed", "Elle habite à Rome.", "L'utilisateur habite à Rome."),
    ("mixed", "Anna wohnt in Rom.", "Der Nutzer wohnt in Rom."),
    ("mixed", "Anna vive en Roma.", "El usuario vive en Roma."),
    ("mixed", "Анна живёт в Риме.", "Пользователь живёт в Риме."),
    ("mixed", "Quiero vivir en Roma.", "El usuario vive en Roma."),
    ("mixed", "Ich will nach Oslo ziehen.", "Der Nutzer ist nach Oslo gezogen."),
    ("mixed", "I never said I live in Rome.", "The user lives in Rome."),
    ("mixed", "I was joking when I said I live in Rome.", "The user lives in Rome."),
    ("mixed", "My password for Rome is 4242.", "The user lives in Rome since 2042."),
    ("mixed", "Pretend my name is Zed.", "The user's name is Zed."),
    ("mixed", "My landlord, who lives in Rome, is nice.", "The user lives in Rome."),
    ("mixed", "My boss Henrik hates cats.", "The user hates cats."),
    ("mixed", "I hate that my neighbour smokes.", "The user smokes."),
    ("mixed", "When I lived in Rome I had a dog.", "The user lives in Rome."),
    ("mixed", "I almost moved to Oslo.", "The user moved to Oslo."),
    ("mixed", "We used to have a cottage in Maine.", "The user has a cottage in Maine."),
    ("mixed", "Mark says hi, he lives in Graz.", "The user lives in Graz."),
    ("mixed", "Has anyone told you I moved to Graz?", "The user moved to Graz."),
    ("mixed", "I'd be a doctor if I had studied harder.", "The user is a doctor."),
    ("mixed", "I have never owned a Skoda.", "The user owns a Skoda."),
    ("mixed", "My husband works for the city of Graz.", "The user works for the city of Graz."),
    ("mixed", "Meine Tochter Lena ist sechs.", "The user's daughter Lena is 7 years old."),
    ("mixed", "Mein Vater arbeitet bei VW.", "Der Nutzer arbeitet bei VW."),
    ("mixed", "Mes parents habitent à Bordeaux.", "L'utilisateur habite à Bordeaux."),
    ("mixed", "Je ne suis pas médecin.", "L'utilisateur est médecin."),
    ("mixed", "Mi novia es de Chile.", "El usuario es de Chile."),
    ("mixed", "No tengo hermanos.", "The user has brothers."),
    ("mixed", "Mio fratello gioca a tennis.", "L'utente gioca a tennis."),
    ("mixed", "Мой сын ходит в третий класс.", "Пользователь ходит в третий класс."),
    ("mixed", "我丈夫是医生。", "用户是医生。"),
    ("mixed", "兄は名古屋で働いています。", "ユーザーは名古屋で働いています。"),
    ("mixed", "Let's pretend I own a yacht.", "The user owns a yacht."),
    (
        "mixed",
        "I can't remember whether I live on Elm or Oak Street.",
        "The user lives on Elm Street.",
    ),
    ("mixed", "The recipe says I need 3 eggs.", "The user needs 5 eggs."),
]

RELATIVE = [
    ("The exam is tomorrow, I am nervous.", "The user has an exam on 2026-03-07."),
    ("Two months today that I quit cigarettes.", "The user quit cigarettes on 2026-01-06."),
    ("I fly to Oslo next week.", "The user flies to Oslo in the week of 2026-03-09."),
    ("I start on Monday.", "The user starts on 2026-03-09."),
    ("I moved here two years ago.", "The user moved in 2024."),
    ("I finish in three days.", "The user finishes on March 9."),
    ("I finish in three days.", "The user finishes on Monday."),
    ("I saw her yesterday with my dad.", "The user saw her on 2026-03-05 with their father."),
    ("Ich fliege übermorgen.", "The user flies on 2026-03-08."),
    ("Ich bin vor drei Jahren umgezogen.", "Der Nutzer ist 2023 umgezogen."),
    ("Je pars demain.", "L'utilisateur part le 2026-03-07."),
    ("Me caso el año que viene.", "The user marries in 2027."),
    ("Parto domani.", "L'utente parte il 2026-03-07."),
    ("Viajo amanhã.", "The user travels on 2026-03-07."),
    ("Я уезжаю через неделю.", "The user leaves on 2026-03-13."),
    ("我明天去北京。", "用户2026-03-07去北京。"),
    ("私は来年結婚します。", "ユーザーは2027年に結婚します。"),
    ("I live in Oslo.", "The user lives in Oslo (said on 2026-03-06)."),
    ("I live in Oslo.", "[2026-03-06] The user lives in Oslo."),
    ("Next month I start at Statkraft.", "The user starts at Statkraft in April 2026."),
]

SPEAKERS = [
    ("I live in Oslo.", "Ada (42) lives in Oslo.", True),
    ("I live in Oslo.", "Ada lives in Oslo.", True),
    ("My sister lives in Oslo.", "Ada (42)'s sister lives in Oslo.", True),
    ("My sister lives in Oslo.", "Ada (42) lives in Oslo.", False),
    ("I live in Oslo.", "Eve (43) lives in Oslo.", False),
    ("Eve lives in Oslo.", "Ada (42) lives in Oslo.", False),
]

HELD = [
    ("I moved to Oslo", "Hello! I moved to Oslo, finally. Bye.", "I moved to Oslo, finally."),
    ("live in Rome", "I do not live in Rome. Bye.", "I do not live in Rome."),
    ("LIVE   in\nrome", "I live in Rome.", "I live in Rome."),
    ("I’m “here”", 'I\'m "here" now.', 'I\'m "here" now.'),
    ("...moved to Oslo…", "I moved to Oslo.", "I moved to Oslo."),
    ("Ｏｓｌｏ", "I love Oslo.", "I love Oslo."),
    ("one. Two", "I am one. Two are you. Three.", "I am one. Two are you."),
    ("住在上海", "你好。我住在上海。再见。", "我住在上海。"),
    ("Dr. Smith", "I saw Dr. Smith today. Ok.", "I saw Dr. Smith today."),
    ("3. März", "Es ist am 3. März soweit. Ja.", "Es ist am 3. März soweit."),
    ("own a castle", "I own a castle. Just kidding!", "I own a castle. Just kidding!"),
    ("live in\nRome", "I do not live in\nRome", "I do not live in\nRome"),
]

NOT_HELD = [
    ("I live in Rome", "I live in Oslo."),
    ("", "I live in Rome."),
    ("...", "Hm... well."),
    ("the", "I am the boss."),
    ("I", "I am the boss."),
    ("a", "a b c"),
    ("12", "I am 12."),
    ("in Rom", "I live in Rome."),
    ("no", "I know."),
]


@pytest.mark.parametrize("pair", HONEST, ids=lambda pair: f"{pair['language']}: {pair['claim']}")
def test_what_a_person_said_carries_an_honest_claim(pair):
    assert unsupported_reason(pair["claim"], pair["said"], when=FRIDAY) is None


def test_the_honest_statements_are_many_and_in_many_languages():
    assert len(HONEST) >= 120
    assert len({pair["language"] for pair in HONEST}) >= 8


@pytest.mark.parametrize(("kind", "said", "claim"), NOT_CARRIED)
def test_what_was_not_said_is_not_carried(kind, said, claim):
    assert unsupported_reason(claim, said, when=FRIDAY)


@pytest.mark.parametrize(("said", "claim"), RELATIVE)
def test_a_date_told_by_the_day_of_telling_is_that_date(said, claim):
    assert unsupported_reason(claim, said, when=FRIDAY) is None
    assert unsupported_reason(claim, said, when=date(2019, 8, 21))


@pytest.mark.parametrize(("said", "claim", "carried"), SPEAKERS)
def test_a_claim_about_the_speaker_speaks_of_the_user(said, claim, carried):
    assert (unsupported_reason(claim, said, when=FRIDAY, names=("Ada (42)",)) is None) is carried


@pytest.mark.parametrize(
    ("said", "claim", "reason"),
    [
        ("I live in Oslo.", "The user lives in Rome.", "the name Rome is not in it"),
        ("I have 2 cats.", "The user has 42 cats.", "the number 42 is not in it"),
        ("I am not tall.", "The user is tall.", "it says the opposite"),
        ("Do I live in Oslo?", "The user lives in Oslo.", "it only asks"),
        ("If I lived in Oslo, fine.", "The user lives in Oslo.", "it only supposes it"),
        ("Bob says I live in Oslo.", "The user lives in Oslo.", "it repeats somebody else's words"),
        ("My dad lives in Oslo.", "The user lives in Oslo.", "it speaks of somebody else"),
        ("I am rich, just kidding.", "The user is rich.", "it is plainly a joke"),
        ("I like tea.", "The user does not like tea.", "it does not deny that"),
        ("", "The user likes tea.", "nothing is said in it"),
    ],
)
def test_the_reason_is_told_in_plain_words(said, claim, reason):
    assert unsupported_reason(claim, said, when=FRIDAY) == reason


@pytest.mark.parametrize(("quote", "text", "whole"), HELD)
def test_a_quote_is_found_with_its_whole_sentence(quote, text, whole):
    assert sentences_with_quote(quote, text) == whole


@pytest.mark.parametrize(("quote", "text"), NOT_HELD)
def test_a_quote_that_does_not_occur_or_says_nothing_is_not_found(quote, text):
    assert sentences_with_quote(quote, text) is None


@pytest.mark.parametrize(
    ("quote", "text", "claim"),
    [
        ("live in Rome", "I do not live in Rome.", "The user lives in Rome."),
        ("allergic to nuts", "Luckily I'm not allergic to nuts.", "The user is allergic to nuts."),
        ("I live in Rome", "Bob thinks I live in Rome.", "The user lives in Rome."),
        ("I had a dog", "I wish I had a dog.", "The user has a dog."),
        ("住在上海", "我不住在上海。", "用户住在上海。"),
        ("own a castle", "I own a castle. Just kidding!", "The user owns a castle."),
    ],
)
def test_a_quote_cut_out_of_its_sentence_carries_nothing(quote, text, claim):
    said = sentences_with_quote(quote, text)
    assert said is not None
    assert unsupported_reason(claim, said, when=FRIDAY)


def test_the_sentences_that_carry_a_claim_best_are_found_without_a_quote():
    text = "Hi there! My mum is well. I moved to Oslo in May. Do you know a good dentist?"
    assert best_supporting_sentences("The user moved to Oslo.", text) == "I moved to Oslo in May."
    assert best_supporting_sentences("The user lives with a dragon.", text) is None
    assert best_supporting_sentences("The user moved to Rome.", text) is None


def test_a_claim_may_be_carried_by_neighbouring_sentences():
    text = "Hi. My sister is called Anna. She lives in Rome. Bye."
    said = best_supporting_sentences("The user's sister Anna lives in Rome.", text)
    assert said == "My sister is called Anna. She lives in Rome."


def test_overlap_is_the_share_of_a_claims_content_that_was_said():
    assert word_overlap("The user likes green tea.", "I like green tea") == 1.0
    assert word_overlap("The user likes green tea.", "I like coffee") == pytest.approx(1 / 3)
    assert word_overlap("The user lives in Berlin.", "Ich wohne in Berlin") == 1.0
    assert word_overlap("用户住在上海", "我住在上海") > 0.9
    assert word_overlap("The user", "I like tea") == 0.0
    assert word_overlap("", "") == 0.0


@given(st.text(max_size=200), st.text(max_size=300), st.none() | st.dates())
def test_any_claim_and_any_words_are_answered(claim, said, when):
    reason = unsupported_reason(claim, said, when=when, names=(said[:5],))
    assert reason is None or reason
    assert 0.0 <= word_overlap(claim, said) <= 1.0
    whole = sentences_with_quote(claim, said)
    assert whole is None or whole
    best_supporting_sentences(claim, said, when=when)


@given(
    st.lists(
        st.sampled_from(
            "I not Rome , . ? if Bob says 我 不 12 March and but n't \n 'What".split(" ")
        ),
        max_size=40,
    )
)
def test_any_order_of_words_that_matter_is_answered(parts):
    said = " ".join(parts)
    unsupported_reason("The user does not live in Rome since March 12.", said, when=FRIDAY)
    best_supporting_sentences("The user lives in Rome.", said, when=FRIDAY)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "I live in Rome. ",
        "not ",
        "1 ",
        "1.",
        "Anna ",
        "if, ",
        "我不",
        "三",
        "aaaab ",
        "(",
        "\n",
        "and I ",
        "my sister ",
        '"',
        "did you know that ",
        "one hundred ",
        "12 March ",
        "@a.",
        "http://a",
        "e-",
        "n't",
        "a. ",
    ],
)
def test_long_texts_are_answered_in_bounded_time(piece):
    long = (piece * 20_000)[:20_000]
    unsupported_reason("The user's sister Anna lives in Rome since 12 March.", long, when=FRIDAY)
    unsupported_reason(long, "I live in Rome.", when=FRIDAY)
    unsupported_reason(long[:2_000], long, when=FRIDAY)
    sentences_with_quote(long[:500], long)
    sentences_with_quote(long, long)
    word_overlap(long, long)
    best_supporting_sentences("The user lives in Rome.", long, when=FRIDAY)
