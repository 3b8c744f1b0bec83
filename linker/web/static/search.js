// After a hit was judged, the focus returns to the button that was pressed, so that the keyboard goes on from there.
let pressed = "";
document.addEventListener("submit", (event) => (pressed = event.submitter?.id ?? ""), true);
document.addEventListener("linker:swapped", () => {
  const button = pressed && document.getElementById(pressed);
  if (button) button.focus();
  pressed = "";
});
