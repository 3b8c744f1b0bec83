// The judging page: a draft of the note that a reload keeps, the seed left open or folded, and help about the keys.
const byId = (id) => document.getElementById(id);
const drafts = () => ["note", "tags"].map(byId).filter(Boolean);
const draftOf = (field) => `linker-${field.id}-${byId("verdict").dataset.document}`;
let openSeed = ""; // a seed that the reviewer has unfolded stays unfolded for the documents that follow

/** Adapt a new page to this browser, since the server sends everybody the same one. */
function prepare() {
  if (byId("help")) byId("help").hidden = false;
  if (byId("keys-on")) byId("keys-on").checked = localStorage.getItem("linker-keys") !== "off";
  // Hits of a search next to a pair are judged for the pair's seed.
  const sought = document.querySelector(".find [name=seed]");
  if (sought && byId("verdict")) sought.value = byId("verdict").elements.seed.value;
  for (const field of drafts()) field.value ||= sessionStorage.getItem(draftOf(field)) ?? "";
  if (drafts().some((field) => field.value)) document.querySelector(".notes").open = true;
  const seed = document.querySelector("[data-seed]");
  if (seed?.dataset.seed === openSeed) seed.open = true;
}

document.addEventListener("linker:swapped", prepare);
prepare();

document.addEventListener("input", (event) => {
  if (drafts().includes(event.target)) sessionStorage.setItem(draftOf(event.target), event.target.value);
});
document.addEventListener("change", (event) => {
  if (event.target.id === "keys-on") localStorage.setItem("linker-keys", event.target.checked ? "on" : "off");
});
document.addEventListener("submit", (event) => {
  if (event.target.id === "verdict") for (const field of drafts()) sessionStorage.removeItem(draftOf(field));
});
document.addEventListener("toggle", (event) => {
  const { seed } = event.target.dataset ?? {};
  if (seed !== undefined && event.target.isConnected) openSeed = event.target.open ? seed : "";
}, true);
document.addEventListener("click", (event) => {
  if (event.target.closest("#help")) byId("keys").showModal();
});
