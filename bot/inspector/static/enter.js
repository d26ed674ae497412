// Sends what stands behind "#" in a link that logs in, and takes it out of the browser's history.

const form = document.querySelector("form[data-enter]");

function enter() {
  const secret = location.hash.slice(1);
  if (!secret) return;
  history.replaceState(null, "", location.pathname);
  form.querySelector("input[name=token]").value = secret;
  form.querySelector("[data-paste]").hidden = true;
  form.requestSubmit();
}

enter();
// A link that is opened where this page is shown already loads nothing.
addEventListener("hashchange", enter);
