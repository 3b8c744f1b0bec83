// Polls a job's progress once a second; when the job ends, it reloads the page, which leads on to the next one.
const bar = document.getElementById("job");
const told = document.getElementById("told");
let tenth = 0;

async function ask() {
  try {
    const { state, told: text, share } = await (await fetch(bar.dataset.state)).json();
    if (state !== "running") return location.reload();
    told.textContent = text;
    if (share === null) bar.removeAttribute("value");
    else bar.value = share;
    if (Math.floor((share ?? 0) * 4) > tenth) { // screen readers announce each quarter of the work
      tenth = Math.floor(share * 4);
      document.getElementById("announce").textContent = text;
    }
  } catch {
    // The server is unavailable for a moment; the next request may reach it.
  }
  setTimeout(ask, 1000);
}
if (bar) setTimeout(ask, 500);
