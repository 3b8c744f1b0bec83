// Groups and their documents: j and k step through them, x chooses one, and Enter opens it.

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

document.addEventListener("linker:key", (event) => {
  const here = document.querySelector("[data-step].here"), link = here?.querySelector(".name a");
  if (event.detail === "j" || event.detail === "k") step(event.detail === "j");
  else if (event.detail === "x" && here) here.querySelector("input").click();
  else if (event.detail === "Enter" && link) link.click();
  else return;
  event.preventDefault();
});
