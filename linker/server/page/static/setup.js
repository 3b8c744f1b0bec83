// The set-up: a file is read again after any change of its settings; without scripts, readers use a button for this.
const hide = () => document.querySelectorAll(".again").forEach((p) => (p.hidden = true));

document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form?.id !== "setup" || !event.target.closest(".file")) return;
  const again = event.target.closest(".file").querySelector("[name=again]");
  if (!again || !form.reportValidity()) return;
  form.dataset.swap = ""; // page.js replaces this page with the answer; starting leads to another page
  form.requestSubmit(again);
  delete form.dataset.swap;
});
document.addEventListener("linker:swapped", hide);
hide();
