// The rows: a key for each verdict, arrow keys through the candidates and the list; the open row stays visible.
const KEYS = { y: "key-y", n: "key-n", 0: "key-0", s: "key-s" };

function prepare() {
  const here = document.querySelector(".rows .here"); // only the list scrolls, never the page
  if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.offsetTop - here.parentElement.clientHeight / 3;
}
document.addEventListener("linker:swapped", prepare);
prepare();

/** Follow the link of the row before or after the one that is open. */
function step(forward) {
  const here = document.querySelector(".rows .here");
  const row = here ? (forward ? here.nextElementSibling : here.previousElementSibling) : document.querySelector(".rows li");
  row?.querySelector("a").click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape") document.getElementById("main").focus();
    return;
  }
  if (localStorage.getItem("linker-keys") === "off") return;
  const button = document.getElementById(KEYS[event.key]);
  if (button) button.form.requestSubmit(button);
  else if (event.key === "u") document.getElementById("undo").requestSubmit();
  else if (event.key === "j" || event.key === "k") step(event.key === "j");
  else if (event.key === "t" && document.getElementById("note")) {
    document.querySelector(".notes").open = true;
    document.getElementById("note").focus();
  } else if (event.key === "o") document.getElementById("other")?.click();
  else return;
  event.preventDefault();
});
