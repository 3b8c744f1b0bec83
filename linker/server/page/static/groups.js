// Groups and their documents: j and k step through them, x chooses one, and each change has a key.
const KEYS = { m: "key-m", s: "key-s", a: "key-a", v: "key-v", u: "key-u" };

/** Move to the next entry of the list, or the previous one. */
function step(forward) {
  const rows = [...document.querySelectorAll("[data-step]")];
  const at = rows.findIndex((row) => row.classList.contains("here"));
  const next = rows[at < 0 ? 0 : at + (forward ? 1 : -1)];
  if (!next) return;
  rows[at]?.classList.remove("here");
  next.classList.add("here");
  next.querySelector("input").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape") document.getElementById("main").focus();
    return;
  }
  if (localStorage.getItem("linker-keys") === "off") return;
  const here = document.querySelector("[data-step].here");
  const button = document.getElementById(KEYS[event.key]);
  if (button) button.form.requestSubmit(button);
  else if (event.key === "j" || event.key === "k") step(event.key === "j");
  else if (event.key === "x" && here) here.querySelector("input").click();
  else if (event.key === "g" && document.getElementById("to")) document.getElementById("to").focus();
  else if (event.key === "Enter" && here?.querySelector(".name a")) here.querySelector(".name a").click();
  else return;
  event.preventDefault();
});
