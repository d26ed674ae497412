"""Reply texts of the offline responder in English, German, French and Spanish.

Rule 1: a text says that the responder is no language model, and never promises what was not done.
Rule 2: sentences are short.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.language.language_detection import Language

SET_MODEL = "set `TAPEBOT_MODEL` in `.env`, e.g. `TAPEBOT_MODEL=openai/gpt-5-mini` or any other litellm model name"


@dataclass(frozen=True, slots=True)
class Phrases:
    """Reply texts in one language; placeholders in braces are filled in."""

    open: str
    close: str
    you_said: str
    other_said: str
    earlier: str
    noted: str
    known: str
    remember: str
    unknown: str
    how_to_tell: str
    closest: str
    forgotten: str
    nothing_to_forget: str
    found_to_forget: str
    hello: str
    thanks: str
    bye: str
    honest: str
    honest_help: str
    needs_model: str
    nothing: str


ENGLISH = Phrases(
    open='"',
    close='"',
    you_said="You said on {when}: {quote}",
    other_said="{who} said on {when}: {quote}",
    earlier="That changed. Before, on {when}: {quote}",
    noted="Noted: {quote}",
    known="I have that already: {quote}",
    remember="I'll remember that: {quote}",
    unknown="I don't know that yet.",
    how_to_tell="Tell me, and I will remember it.",
    closest="The closest thing I was told:",
    forgotten="Forgotten: {quote}.",
    nothing_to_forget="I found nothing about that to forget.",
    found_to_forget="I found this.",
    hello="Hello{name}!",
    thanks="You're welcome.",
    bye="Goodbye{name}. What you told me stays here.",
    honest=(
        "_I am tapebot's offline responder, not a language model: I remember what you tell me and"
        " look it up. For a real model, set `TAPEBOT_MODEL` in `.env`._"
    ),
    honest_help=(
        'Tell me something about you ("My sister Eva lives in Oslo.") and ask me later ("Where does'
        ' my sister live?"). I also list what I know ("What do you know about me?") and forget it'
        ' ("Forget my sister.").'
    ),
    needs_model=(
        "That needs a language model, and I am the offline responder: I only remember what I am told"
        f" and look it up. To use a real model, {SET_MODEL}."
    ),
    nothing=(
        "I found nothing in that to note or to look up. I am the offline responder, not a language "
        "model: tell me facts about you, or ask me about what you told me."
    ),
)

GERMAN = Phrases(
    open="„",
    close="“",
    you_said="Du hast am {when} gesagt: {quote}",
    other_said="{who} hat am {when} gesagt: {quote}",
    earlier="Das hat sich geändert. Vorher, am {when}: {quote}",
    noted="Notiert: {quote}",
    known="Das weiß ich schon: {quote}",
    remember="Ich merke mir das: {quote}",
    unknown="Das weiß ich noch nicht.",
    how_to_tell="Sag es mir, dann merke ich es mir.",
    closest="Am nächsten kommt, was mir gesagt wurde:",
    forgotten="Vergessen: {quote}.",
    nothing_to_forget="Dazu fand ich nichts, was zu vergessen wäre.",
    found_to_forget="Das habe ich gefunden.",
    hello="Hallo{name}!",
    thanks="Gern geschehen.",
    bye="Auf Wiedersehen{name}.",
    honest=(
        "_Ich bin der Offline-Antworter von tapebot (offline responder), kein Sprachmodell: Ich merke"
        " mir, was du sagst, und schlage es nach. Für ein Modell: `TAPEBOT_MODEL` in `.env`._"
    ),
    honest_help=(
        "Erzähl mir etwas über dich („Ich wohne in Berlin.“) und frag mich später („Wo wohne ich?“)."
    ),
    needs_model=(
        "Dafür braucht es ein Sprachmodell; ich bin nur der Offline-Antworter. Ein Modell stellst du"
        " mit `TAPEBOT_MODEL` in `.env` ein (ein Name von litellm)."
    ),
    nothing=(
        "Darin fand ich nichts zu notieren oder nachzuschlagen. Ich bin der Offline-Antworter, kein"
        " Sprachmodell."
    ),
)

FRENCH = Phrases(
    open="« ",
    close=" »",
    you_said="Tu as dit le {when} : {quote}",
    other_said="{who} a dit le {when} : {quote}",
    earlier="Cela a changé. Avant, le {when} : {quote}",
    noted="C'est noté : {quote}",
    known="Je le sais déjà : {quote}",
    remember="Je m'en souviendrai : {quote}",
    unknown="Je ne le sais pas encore.",
    how_to_tell="Dis-le-moi et je m'en souviendrai.",
    closest="Ce qui s'en approche le plus :",
    forgotten="Oublié : {quote}.",
    nothing_to_forget="Je n'ai rien trouvé à oublier là-dessus.",
    found_to_forget="Voici ce que j'ai trouvé.",
    hello="Bonjour{name} !",
    thanks="De rien.",
    bye="Au revoir{name}.",
    honest=(
        "_Je suis le répondeur hors ligne de tapebot (offline responder), pas un modèle de langue : je"
        " retiens ce que tu dis et je le retrouve. Pour un modèle : `TAPEBOT_MODEL` dans `.env`._"
    ),
    honest_help=(
        "Dis-moi quelque chose sur toi (« J'habite à Paris. ») et demande-le-moi plus tard (« Où est-ce"
        " que j'habite ? »)."
    ),
    needs_model=(
        "Cela demande un modèle de langue ; je ne suis que le répondeur hors ligne. Pour un modèle :"
        " `TAPEBOT_MODEL` dans `.env` (un nom de litellm)."
    ),
    nothing=(
        "Je n'y ai rien trouvé à noter ni à chercher. Je suis le répondeur hors ligne, pas un modèle"
        " de langue."
    ),
)

SPANISH = Phrases(
    open="«",
    close="»",
    you_said="Dijiste el {when}: {quote}",
    other_said="{who} dijo el {when}: {quote}",
    earlier="Eso cambió. Antes, el {when}: {quote}",
    noted="Anotado: {quote}",
    known="Ya lo sé: {quote}",
    remember="Lo recordaré: {quote}",
    unknown="Todavía no lo sé.",
    how_to_tell="Dímelo y lo recordaré.",
    closest="Lo más parecido que me dijeron:",
    forgotten="Olvidado: {quote}.",
    nothing_to_forget="No encontré nada que olvidar sobre eso.",
    found_to_forget="Esto es lo que encontré.",
    hello="¡Hola{name}!",
    thanks="De nada.",
    bye="Adiós{name}.",
    honest=(
        "_Soy el contestador sin conexión de tapebot (offline responder), no un modelo de lenguaje:"
        " recuerdo lo que me dices y lo busco. Para un modelo: `TAPEBOT_MODEL` en `.env`._"
    ),
    honest_help=(
        "Cuéntame algo de ti («Vivo en Madrid.») y pregúntamelo después («¿Dónde vivo?»)."
    ),
    needs_model=(
        "Eso requiere un modelo de lenguaje; yo soy solo el contestador sin conexión. Para un modelo:"
        " `TAPEBOT_MODEL` en `.env` (un nombre de litellm)."
    ),
    nothing=(
        "No encontré nada que anotar ni que buscar. Soy el contestador sin conexión, no un modelo de"
        " lenguaje."
    ),
)

PHRASES: dict[Language, Phrases] = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}


def quote(text: str, phrases: Phrases = ENGLISH, limit: int = 280) -> str:
    """Return a text in quotation marks on one line, shortened to ``limit`` characters."""
    flat = " ".join(text.split())
    cut = flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
    return f"{phrases.open}{cut}{phrases.close}"
