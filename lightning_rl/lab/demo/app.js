// The page: one flight after the other under the command of the slider, drawn and plotted.
"use strict";

const $ = id => document.getElementById(id);
const policy = new Policy(JSON.parse($("agent").textContent));
const [LOW, HIGH] = [Math.ceil(policy.limits[0] / 5) * 5, Math.floor(policy.limits[1] / 5) * 5];
const SPEEDS = [1, 4, 32], PAUSE_BETWEEN = 0.7, TRAILS = 24, BIN = 25;

const demo = { flights: [], number: 0, asked: 0, lander: null, random: null, trail: [], sweeping: true, paused: false, speed: 0 };
let colours = {}, wait = 0, owed = 0, before = 0, flame = 0;

function begin() {
  demo.number += 1;
  demo.random = generator(demo.number);
  demo.lander = new Lander(demo.random);
  demo.command = policy.command(demo.asked);
  demo.trail = [];
  wait = 0;
  $("flight").textContent = demo.number;
  $("end").textContent = "";
}

function ask(value) {
  demo.asked = clamp(value, LOW, HIGH);
  $("asked").value = demo.asked;
  $("asked-value").textContent = demo.asked;
}

function step() {
  const { lander } = demo;
  lander.step(policy.act(lander.obs(), demo.command, demo.random));
  if (lander.steps % 3 === 0) demo.trail.push(lander.hull.origin);
  if (!lander.over) return;
  demo.flights.push({ asked: demo.asked, obtained: lander.total, steps: lander.steps, end: lander.end, trail: demo.trail });
  $("end").textContent = `${lander.end} with ${Math.round(lander.total)}`;
  summarise();
  wait = PAUSE_BETWEEN;
}

function next() {
  if (demo.sweeping) ask(LOW + Math.round((HIGH - LOW) * (demo.number * 0.381966 % 1) / 5) * 5); // evenly, in no order
  begin();
}

function advance(seconds) {
  if (demo.lander.over && (wait -= seconds * SPEEDS[demo.speed]) <= 0) next();
  owed = Math.min(owed + seconds * FPS * SPEEDS[demo.speed], 8 * SPEEDS[demo.speed]);
  for (const limit = performance.now() + 14; owed >= 1 && performance.now() < limit; owed--) {
    if (!demo.lander.over) step();
    else if (demo.speed === SPEEDS.length - 1) next();
  }
}

const mean = values => values.reduce((a, b) => a + b, 0) / values.length;

function bins() {
  const found = new Map();
  for (const { asked, obtained } of demo.flights) {
    const at = Math.round(asked / BIN) * BIN;
    found.set(at, [...(found.get(at) || []), { asked, obtained }]);
  }
  return [...found.values()].map(each => [mean(each.map(f => f.asked)), mean(each.map(f => f.obtained)), each.length]);
}

function summarise() {
  const same = demo.flights.filter(each => each.asked === demo.asked).map(each => each.obtained);
  const n = demo.flights.length, all = `${n} flight${n > 1 ? "s" : ""}`;
  const over = same.length > 1 ? ` on average of ${same.length}` : "";
  $("summary").textContent = same.length ? `${all}. Asked for ${demo.asked}, obtained ${Math.round(mean(same))}${over}.` : `${all}.`;
}

// Drawing

function context(canvas) {
  const { width, height } = canvas.getBoundingClientRect(), dense = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * dense), Math.round(height * dense)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const c = canvas.getContext("2d");
  c.setTransform(dense, 0, 0, dense, 0, 0);
  return [c, width, height];
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "card", "accent", "sky-top", "sky-low", "ground", "ground-deep", "pad", "hull", "leg",
    "flame", "star", "low", "high", "grid"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

const hue = asked => `color-mix(in oklab, ${colours.high} ${Math.round(100 * (asked - LOW) / (HIGH - LOW))}%, ${colours.low})`;
const STARS = (random => Array.from({ length: 90 }, () => [random(), random() * 0.7, 0.4 + random()]))(generator(7));

function path(c, points, close) {
  c.beginPath();
  points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
  if (close) c.closePath();
}

function drawSky() {
  const [c, width, height] = context($("sky")), k = width / WIDTH, { lander } = demo;
  const sky = c.createLinearGradient(0, 0, 0, height);
  sky.addColorStop(0, colours["sky-top"]);
  sky.addColorStop(1, colours["sky-low"]);
  c.fillStyle = sky;
  c.fillRect(0, 0, width, height);
  c.fillStyle = colours.star;
  for (const [x, y, r] of STARS) { c.globalAlpha = r / 1.5; c.fillRect(x * width, y * height, r, r); }
  c.globalAlpha = 1;
  c.save();
  c.setTransform(c.getTransform().translate(0, height).scale(k, -k));
  c.lineJoin = c.lineCap = "round";
  drawTrails(c);
  path(c, [[0, 0], ...lander.ground, [WIDTH, 0]], true);
  const soil = c.createLinearGradient(0, 7, 0, 0);
  soil.addColorStop(0, colours.ground);
  soil.addColorStop(1, colours["ground-deep"]);
  c.fillStyle = soil;
  c.fill();
  drawFlags(c);
  drawLander(c, lander);
  c.restore();
}

function drawTrails(c) {
  const shown = demo.flights.slice(-TRAILS);
  c.lineWidth = 0.05;
  shown.forEach(({ trail, asked }, i) => {
    c.globalAlpha = 0.08 + 0.4 * (i + 1) / TRAILS;
    c.strokeStyle = hue(asked);
    path(c, trail);
    c.stroke();
  });
  c.globalAlpha = 0.9;
  c.lineWidth = 0.07;
  c.strokeStyle = hue(demo.asked);
  path(c, demo.trail);
  c.stroke();
  c.globalAlpha = 1;
}

function drawFlags(c) {
  for (const [x, way] of [[WIDTH * 0.4, 1], [WIDTH * 0.6, -1]]) {
    c.strokeStyle = colours.ink;
    c.lineWidth = 0.06;
    path(c, [[x, PAD], [x, PAD + 1.5]]);
    c.stroke();
    c.fillStyle = colours.pad;
    path(c, [[x, PAD + 1.5], [x + way * 0.75, PAD + 1.22], [x, PAD + 0.95]], true);
    c.fill();
  }
}

function drawLander(c, { hull, legs, fired }) {
  flame = fired && !demo.lander.over ? 1 : flame * 0.75;
  if (fired && flame > 0.1) {
    const { at, push, power } = fired, length = (power > 1 ? 6.5 : 2.2) * flame * (0.8 + 0.4 * Math.random());
    const glow = c.createLinearGradient(...at, at[0] + push[0] * length, at[1] + push[1] * length);
    glow.addColorStop(0, colours.flame);
    glow.addColorStop(1, "transparent");
    c.strokeStyle = glow;
    c.lineWidth = power > 1 ? 0.42 : 0.2;
    path(c, [at, [at[0] + push[0] * length, at[1] + push[1] * length]]);
    c.stroke();
  }
  for (const leg of legs) {
    c.fillStyle = leg.touches ? colours.high : colours.leg;
    path(c, leg.corners(), true);
    c.fill();
  }
  c.fillStyle = colours.hull;
  path(c, hull.corners(), true);
  c.fill();
  c.strokeStyle = colours.card;
  c.lineWidth = 0.04;
  c.stroke();
  const eye = hull.toWorld([0, 0.16]);
  c.beginPath();
  c.arc(...eye, 0.15, 0, 7);
  c.fillStyle = colours["sky-low"];
  c.fill();
}

function drawPlot() {
  const [c, width, height] = context($("plot")), left = 54, right = 16, top = 16, bottom = 42, low = Math.min(LOW, -200) - 150;
  const x = asked => left + (asked - LOW + 15) / (HIGH - LOW + 30) * (width - left - right);
  const y = obtained => top + (HIGH + 60 - clamp(obtained, low, HIGH + 60)) / (HIGH + 60 - low) * (height - top - bottom);
  const line = (a, b, colour, dash = [], thick = 1) => {
    [c.strokeStyle, c.lineWidth] = [colour, thick];
    c.setLineDash(dash);
    path(c, [a, b]);
    c.stroke();
    c.setLineDash([]);
  };
  c.clearRect(0, 0, width, height);
  c.font = "12px system-ui, sans-serif";
  c.fillStyle = colours.soft;
  for (let at = Math.ceil(low / 100) * 100; at <= HIGH + 60; at += 100) {
    line([left, y(at)], [width - right, y(at)], colours.grid);
    c.textAlign = "right";
    c.fillText(at, left - 8, y(at) + 4);
    if (at < LOW || at > HIGH) continue;
    c.textAlign = "center";
    c.fillText(at, x(at), height - bottom + 18);
  }
  c.fillText("asked return", (left + width - right) / 2, height - 6);
  c.save();
  c.translate(13, (top + height - bottom) / 2);
  c.rotate(-Math.PI / 2);
  c.fillText("obtained return", 0, 0);
  c.restore();
  line([x(LOW), y(LOW)], [x(HIGH), y(HIGH)], colours.soft, [5, 5]);
  c.textAlign = "left";
  c.fillText("obtained = asked", x(LOW) + 10, y(LOW) + 14);
  line([x(demo.asked), top], [x(demo.asked), height - bottom], colours.accent, [2, 4]);
  const dot = (asked, obtained, r, colour, alpha) => {
    c.globalAlpha = alpha;
    c.fillStyle = colour;
    c.beginPath();
    c.arc(x(asked), y(obtained), r, 0, 7);
    c.fill();
    c.globalAlpha = 1;
  };
  for (const { asked, obtained } of demo.flights.slice(-2000)) dot(asked, obtained, 3, hue(asked), 0.4);
  for (const [asked, obtained, count] of bins()) {
    if (count < 3) continue;
    dot(asked, obtained, 6.5, colours.card, 1);
    dot(asked, obtained, 5, hue(asked), 1);
  }
  if (demo.lander.over) return;
  dot(demo.asked, demo.lander.total, 5, colours.accent, 1);
  const side = demo.asked > (LOW + HIGH) / 2 ? -1 : 1;
  c.textAlign = side < 0 ? "right" : "left";
  c.fillStyle = colours.accent;
  c.fillText("this flight", x(demo.asked) + 10 * side, y(demo.lander.total) + 4);
}

function frame(now) {
  const seconds = Math.min((now - before) / 1000, 0.1);
  before = now;
  if (!demo.paused) advance(seconds);
  $("step").textContent = demo.lander.steps;
  $("so-far").textContent = Math.round(demo.lander.total);
  drawSky();
  drawPlot();
  requestAnimationFrame(frame);
}

// What the user does

function press(id, on) { $(id).setAttribute("aria-pressed", on); }
function setSweep(on) { press("sweep", demo.sweeping = on); }
function setPause(on) { press("pause", demo.paused = on); $("pause").textContent = on ? "Go on" : "Pause"; }
function faster() { demo.speed = (demo.speed + 1) % SPEEDS.length; $("speed").textContent = demo.speed === 2 ? "fast" : `${SPEEDS[demo.speed]}×`; }

$("asked").addEventListener("input", () => { setSweep(false); ask(Number($("asked").value)); });
$("asked").addEventListener("change", () => { setPause(false); begin(); summarise(); });
$("sweep").addEventListener("click", () => setSweep(!demo.sweeping));
$("speed").addEventListener("click", faster);
$("pause").addEventListener("click", () => setPause(!demo.paused));
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = { s: () => setSweep(!demo.sweeping), f: faster, n: next, " ": () => setPause(!demo.paused) };
  const act = keys[event.key.toLowerCase()];
  if (!act || (event.key === " " && event.target.tagName === "BUTTON")) return;
  event.preventDefault();
  act();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);

[$("asked").min, $("asked").max] = [LOW, HIGH];
[$("low").textContent, $("high").textContent] = [LOW, HIGH];
readColours();
ask(HIGH);
begin();
setPause(matchMedia("(prefers-reduced-motion: reduce)").matches);
requestAnimationFrame(now => { before = now; frame(now); });
