// Starts telegram-test-api on a free loopback port and prints its address. The shim is what aiogram
// needs of Telegram and the package has not: is_bot, chat_instance, waiting polls and a true 404.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import library from 'telegram-test-api';

const Telegram = library.TelegramServer ?? library.default ?? library;
const telegram = new Telegram({ storeTimeout: 3600 });
const OWN = new Set([
  'sendMessage', 'editMessageText', 'editMessageReplyMarkup', 'deleteMessage',
  'answerCallbackQuery', 'setWebhook', 'deleteWebhook',
]);
const DONE = new Set(['sendChatAction', 'setMyCommands', 'deleteMyCommands', 'setMessageReaction']);
const actions = [];

const addBotMessage = telegram.addBotMessage.bind(telegram);
telegram.addBotMessage = (raw, token) => {
  const message = { ...raw };
  // Forms carry objects as text, which the package gives back as it came.
  delete message.link_preview_options;
  const shown = addBotMessage(message, token);
  return { ...shown, date: Math.floor(shown.date / 1000) };
};

function answer(response, result) {
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ ok: true, result }));
}

async function updates(request, response, token) {
  const asked = new URLSearchParams(await text(request));
  const until = Date.now() + 1000 * Number(asked.get('timeout') ?? 0);
  for (;;) {
    const found = telegram.getUpdates(token);
    for (const { callback_query: query } of found) if (query) query.chat_instance = '1';
    const left = until - Date.now();
    if (found.length || left <= 0 || response.destroyed) return answer(response, found);
    let timer;
    const over = new Promise((resolve) => { timer = setTimeout(resolve, left); });
    await Promise.race([telegram.waitUserMessage(), over]);
    clearTimeout(timer);
  }
}

async function shim(request, response) {
  const url = new URL(request.url, 'http://localhost');
  const [, token, method] = url.pathname.match(/^\/bot([^/]+)\/(\w+)$/) ?? [];
  if (method === 'getUpdates') return updates(request, response, token);
  if (method === 'getMe') {
    const id = Number(token.split(':')[0]);
    return answer(response, { id, is_bot: true, first_name: 'Tape', username: 'tape_bot' });
  }
  if (DONE.has(method)) {
    const asked = new URLSearchParams(await text(request));
    actions.push({ token, method, chat: asked.get('chat_id'), action: asked.get('action') });
    return answer(response, true);
  }
  if (url.pathname === '/actions') return answer(response, actions);
  if (method && !OWN.has(method)) {
    response.statusCode = 404;
    response.setHeader('Content-Type', 'application/json');
    return response.end('{"ok":false,"error_code":404,"description":"Not Found"}');
  }
  return telegram.webServer(request, response);
}

const server = createServer((request, response) => {
  shim(request, response).catch((error) => {
    response.statusCode = 500;
    response.end(String(error));
  });
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
