// Shared by all pages: forms and links with data-swap replace <main> by that of the answer, without a reload.
const SWAP = { "x-linker-swap": "1" };

/** Announce a sentence to screen readers. */
function announce(text) {
  document.getElementById("announce").textContent = text;
}

/** Fetch a page, put its <main> here, and notify listeners ("linker:swapped" on document). Network errors are shown. */
async function swap(url, options = {}) {
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { ...options, headers: { ...SWAP, ...options.headers } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("main");
    if (!next) throw new Error(String(answer.status));
    const focused = document.activeElement?.id;
    document.title = page.title;
    main.replaceChildren(...next.childNodes);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    const path = main.querySelector("[data-path]")?.dataset.path;
    if (path) history.replaceState(null, "", path);
    const said = main.querySelector("[data-announce]");
    announce(said ? said.dataset.announce : page.title);
    document.dispatchEvent(new CustomEvent("linker:swapped", { detail: { url, ok: answer.ok } }));
    return answer.ok;
  } catch {
    const failed = document.getElementById("offline");
    if (failed) failed.hidden = false;
    announce(failed?.textContent ?? "");
    return false;
  } finally {
    main.removeAttribute("aria-busy");
  }
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form[data-swap]")) return;
  event.preventDefault();
  const main = document.getElementById("main");
  if (main.getAttribute("aria-busy")) return; // one answer at a time: a second press would judge the next document
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  const isPost = form.method === "post";
  const done = await (isPost ? swap(form.action, { method: "POST", body: fields }) : swap(`${form.action}?${fields}`));
  if (done && form.dataset.swap === "top") window.scrollTo(0, 0);
});

// A menu closes on Escape, or when the focus moves elsewhere.
const menu = document.querySelector(".account");
document.addEventListener("click", (event) => {
  if (menu?.open && !menu.contains(event.target)) menu.open = false;
});
menu?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.preventDefault();
  menu.open = false;
  menu.querySelector("summary").focus();
});

// A key presses what declares it in aria-keyshortcuts; a page's own script handles the others ("linker:key" on document).
// Letters and digits can be turned off, and Escape leaves a field.
const FIELD = "input:not([type=checkbox], [type=radio]), textarea, select";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.target.matches(FIELD)) {
    if (event.key === "Escape") document.getElementById("main").focus();
    return;
  }
  if (/^\w/.test(event.key) && localStorage.getItem("linker-keys") === "off") return;
  const declared = [...document.querySelectorAll(`[aria-keyshortcuts="${CSS.escape(event.key)}"]`)];
  const pressed = declared.find((one) => one.checkVisibility()) ?? declared[0];
  const given = new CustomEvent("linker:key", { detail: event.key, cancelable: true });
  if (!pressed && document.dispatchEvent(given)) return;
  event.preventDefault();
  if (!pressed?.matches(FIELD)) return pressed?.click();
  pressed.closest("details")?.setAttribute("open", "");
  pressed.focus();
});

// Times are shown in the reader's time zone.
function localise() {
  const { lang } = document.documentElement;
  const locale = navigator.languages.find((tag) => tag.startsWith(lang)) ?? lang; // en-GB writes "13 January"
  for (const time of document.querySelectorAll("time[datetime]:not([data-local])")) {
    const isDay = time.dateTime.length === 10;
    const form = isDay ? { dateStyle: "long", timeZone: "UTC" } : { dateStyle: "medium", timeStyle: "short" };
    time.textContent = new Intl.DateTimeFormat(locale, form).format(new Date(time.dateTime));
    time.dataset.local = "";
  }
}
document.addEventListener("linker:swapped", localise);
localise();
