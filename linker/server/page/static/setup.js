// The set-up: what is changed about a file is read again at once; the button for it is for readers without scripts.
const hide = () => document.querySelectorAll(".again").forEach((p) => (p.hidden = true));

document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form?.id !== "setup" || !event.target.closest(".file")) return;
  const again = event.target.closest(".file").querySelector("[name=again]");
  if (!again || !form.reportValidity()) return;
  form.dataset.swap = ""; // page.js puts the answer in place of this page; a start goes on to another page
  form.requestSubmit(again);
  delete form.dataset.swap;
});
document.addEventListener("linker:swapped", hide);
hide();
