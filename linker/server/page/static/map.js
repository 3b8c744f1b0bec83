// The map of documents: all points are written into one array of pixels, and at most one picture is drawn per frame.
const canvas = document.getElementById("map");
const context = canvas.getContext("2d", { alpha: false });
const near = document.getElementById("near");
const SPAN = 65535;
// Kinds of points, drawn in this order, so that the last is on top.
const KINDS = ["unread", "not", "skip", "mixed", "maybe", "relevant", "seed"];
const SIZES = [2, 2, 2, 3, 3, 4, 6];

let ids = [];
let places = new Uint16Array(0); // x, y, x, y …
let kinds = new Uint8Array(0);
let order = new Uint32Array(0); // points by kind
let colours = new Uint32Array(KINDS.length);
let back = 0;
let picture, pixels;
let scale = 1, left = 0, top = 0; // a point is at (x − left) · scale
let waiting = false, shown = -1;

function rgba(name) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

function readColours() {
  back = rgba("--paper");
  const names = { unread: "--field", not: "--line", skip: "--line", mixed: "--error", maybe: "--warn", relevant: "--accent", seed: "--text" };
  KINDS.forEach((kind, i) => (colours[i] = rgba(names[kind])));
}

function fit() {
  const { width, height } = canvas.getBoundingClientRect();
  canvas.width = Math.max(1, Math.round(width));
  canvas.height = Math.max(1, Math.round(height));
  picture = context.createImageData(canvas.width, canvas.height);
  pixels = new Uint32Array(picture.data.buffer);
}

function whole() {
  scale = (Math.min(canvas.width, canvas.height) - 16) / SPAN;
  left = SPAN / 2 - canvas.width / 2 / scale;
  top = SPAN / 2 - canvas.height / 2 / scale;
  redraw();
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

function draw() {
  const { width, height } = canvas;
  pixels.fill(back);
  const extra = ids.length < 3000 ? 2 : 0; // if there are few points, they are larger
  for (let i = 0; i < order.length; i++) {
    const point = order[i];
    const size = SIZES[kinds[point]] + extra;
    const x = ((places[2 * point] - left) * scale - size / 2) | 0;
    const y = ((places[2 * point + 1] - top) * scale - size / 2) | 0;
    if (x < 0 || y < 0 || x + size > width || y + size > height) continue;
    const colour = point === shown ? colours[6] : colours[kinds[point]];
    for (let row = y * width, end = (y + size) * width; row < end; row += width) pixels.fill(colour, row + x, row + x + size);
  }
  context.putImageData(picture, 0, 0);
  canvas.dataset.frames = Number(canvas.dataset.frames ?? 0) + 1;
}

function nearest(x, y, count, within) {
  const best = [];
  for (let i = 0; i < ids.length; i++) {
    const dx = (places[2 * i] - left) * scale - x, dy = (places[2 * i + 1] - top) * scale - y;
    const distance = dx * dx + dy * dy;
    if (distance > within || (best.length === count && distance >= best[count - 1][0])) continue;
    best.push([distance, i]);
    best.sort((a, b) => a[0] - b[0]);
    if (best.length > count) best.pop();
  }
  return best.map(([, i]) => i);
}

let asked = 0;
async function show(point) {
  if (point === shown || point < 0) return;
  shown = point;
  redraw();
  const mine = ++asked;
  await new Promise((done) => setTimeout(done, 60)); // request nothing while the pointer merely passes by
  if (mine !== asked) return;
  const answer = await fetch(`${canvas.dataset.text}?id=${encodeURIComponent(ids[point])}`);
  const { title, text } = await answer.json();
  if (mine !== asked) return;
  document.getElementById("shown-id").textContent = title || ids[point];
  document.getElementById("shown-text").textContent = text;
}

let listing = 0;
function list() {
  clearTimeout(listing);
  listing = setTimeout(() => {
    near.replaceChildren(
      ...nearest(canvas.width / 2, canvas.height / 2, 8, Infinity).map((point) => {
        const button = document.createElement("button");
        button.className = "plain";
        button.textContent = ids[point];
        button.addEventListener("click", () => show(point));
        button.addEventListener("focus", () => show(point));
        const item = document.createElement("li");
        item.append(button);
        return item;
      }),
    );
  }, 200);
}

function zoom(factor, x = canvas.width / 2, y = canvas.height / 2) {
  const most = 40 * (Math.min(canvas.width, canvas.height) / SPAN);
  const next = Math.min(Math.max(scale * factor, most / 80), most);
  left += x / scale - x / next;
  top += y / scale - y / next;
  scale = next;
  redraw();
  list();
}

function pan(dx, dy) {
  left -= dx / scale;
  top -= dy / scale;
  redraw();
  list();
}

let dragging = false;
canvas.addEventListener("pointerdown", (event) => {
  dragging = true;
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", () => (dragging = false));
canvas.addEventListener("pointercancel", () => (dragging = false));
canvas.addEventListener("pointermove", (event) => {
  if (dragging) pan(event.movementX, event.movementY);
  else show(nearest(event.offsetX, event.offsetY, 1, 144)[0] ?? -1);
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  if (steps[event.key]) pan(...steps[event.key]);
  else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-" || event.key === "−") zoom(1 / 1.4);
  else return;
  event.preventDefault();
});
document.getElementById("zoom-in").addEventListener("click", () => zoom(1.4));
document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
document.getElementById("whole").addEventListener("click", whole);
new ResizeObserver(() => {
  const middle = picture && [left + canvas.width / 2 / scale, top + canvas.height / 2 / scale];
  fit();
  if (!middle) return whole();
  left = middle[0] - canvas.width / 2 / scale;
  top = middle[1] - canvas.height / 2 / scale;
  redraw();
}).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  redraw();
});

const [points, verdicts] = await Promise.all([
  fetch(canvas.dataset.points).then((answer) => answer.arrayBuffer()),
  fetch(canvas.dataset.verdicts).then((answer) => answer.json()),
]);
const bytes = new Uint8Array(points);
const line = bytes.indexOf(10);
ids = JSON.parse(new TextDecoder().decode(bytes.subarray(0, line))).ids;
places = new Uint16Array(points.slice(line + 1)); // little-endian, as is every machine with a browser
kinds = Uint8Array.from(ids, (id) => Math.max(0, KINDS.indexOf(verdicts[id])));
order = Uint32Array.from(ids.keys()).sort((a, b) => kinds[a] - kinds[b]);
readColours();
redraw();
list();
canvas.dataset.ready = "yes";
