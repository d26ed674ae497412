// The page's language: messages from the server's catalogue, numbers and dates as the language writes them.
// Rule: a message is English where it stands; one without a translation stays so.

const { lang, dataset } = document.documentElement;

// In the person's own region where the browser knows of one: "en-GB" on an English page.
const own = navigator.languages.find((one) => one.split("-")[0] === lang) ?? lang;

/** How numbers and dates are written; with the digits that the server writes, too. */
export const locale = new Intl.Locale(own, { numberingSystem: "latn" }).toString();

const messages = await catalogue();
const rules = new Intl.PluralRules(lang);
const numbers = new Intl.NumberFormat(locale);

async function catalogue() {
  if (!dataset.messages) return {};
  try {
    const response = await fetch(dataset.messages);
    return response.ok ? await response.json() : {};
  } catch {
    return {}; // The page works in English.
  }
}

/** A message, with its values in place of their names: `_("{name} is empty.", { name })`. */
export function _(message, values = {}) {
  return filled(messages[message] ?? message, values);
}

/** The form of a message that fits a number, which stands for `{n}`. */
export function ngettext(singular, plural, n, values = {}) {
  const forms = messages[singular] ?? { one: singular, other: plural };
  const form = forms[rules.select(n)] ?? forms.other ?? plural;
  return filled(form, { n: number(n), ...values });
}

/** A number as the language writes it. */
export function number(value) {
  return numbers.format(value);
}

// In one pass: a value with braces in it names nothing.
function filled(message, values) {
  return message.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
