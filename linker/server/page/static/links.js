// One key for each verdict on a pair of pages, unless it is typed into a field.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || localStorage.getItem("linker-keys") === "off") return;
  if (event.target.matches("input, textarea, select") || !/^[ynmsu]$/.test(event.key)) return;
  const button = document.getElementById(`pair-${event.key}`);
  if (!button) return;
  event.preventDefault();
  button.form.requestSubmit(button);
});
