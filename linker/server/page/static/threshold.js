// The threshold's slider: each of its steps is a point of the curve that the server computed.
const points = JSON.parse(document.getElementById("threshold").dataset.points);
const slider = document.getElementById("slider");
const here = document.getElementById("here");
const language = document.documentElement.lang;
const number = new Intl.NumberFormat(language, { maximumFractionDigits: 3 });
const percent = new Intl.NumberFormat(language, { style: "percent" });

function show() {
  const [threshold, judged, relevant, precision, recall] = points[slider.value];
  const texts = { at: number.format(threshold), above: number.format(judged), "relevant-above": number.format(relevant), precision: percent.format(precision), recall: percent.format(recall) };
  for (const [id, text] of Object.entries(texts)) document.getElementById(id).textContent = text;
  here.setAttribute("cx", 40 + 370 * recall);
  here.setAttribute("cy", 280 - 270 * precision);
  slider.setAttribute("aria-valuetext", texts.at);
}
slider.addEventListener("input", show);
show();
