// The rows: j and k step through the list, and the open row stays visible.
function prepare() {
  const here = document.querySelector(".rows .here"); // only the list scrolls, never the page
  if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.offsetTop - here.parentElement.clientHeight / 3;
}
document.addEventListener("linker:swapped", prepare);
prepare();

/** Follow the link of the row before or after the one that is open. */
document.addEventListener("linker:key", (event) => {
  if (event.detail !== "j" && event.detail !== "k") return;
  event.preventDefault();
  const here = document.querySelector(".rows .here");
  const row = here ? here[event.detail === "j" ? "nextElementSibling" : "previousElementSibling"] : document.querySelector(".rows li");
  row?.querySelector("a").click();
});
