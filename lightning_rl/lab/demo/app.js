// The page: one episode after the other under the command of the slider, drawn and plotted.
"use strict";

const $ = id => document.getElementById(id);
const TASKS = { lander: Lander, cartpole: CartPole, pendulum: Pendulum };
const AGENTS = JSON.parse($("agents").textContent);
const SPEEDS = [1, 4, 32], REST = 0.7, TRAILS = 24;
const STEERING = {
  arrowleft: "left", a: "left", arrowright: "right", d: "right", arrowup: "up", w: "up",
};

const demo = {
  agent: null, Task: null, policy: null, range: null, // of the agent that was chosen
  episodes: [], number: 0, asked: null,
  task: null, random: null, command: null, trail: [], mine: false, // of the episode that runs
  sweeping: false, paused: false, speed: 0, taken: false, keys: {},
};
let wait = 0, owed = 0, before = 0;

// Agents, commands, episodes

function choose(name) {
  const agent = AGENTS.find(each => each.name === name) || AGENTS[0];
  demo.agent = agent;
  demo.Task = TASKS[agent.task];
  demo.policy = new Policy(agent);
  demo.episodes = [];
  demo.number = 0;
  demo.asked = null;
  demo.range = rangeOf(demo.policy, demo.Task);
  $("agent").value = agent.name;
  $("about").textContent = demo.Task.about;
  $("made").textContent = agent.made;
  $("parameters").textContent = agent.parameters;
  document.body.dataset.asks = agent.asks;
  if (agent.asks) {
    const { low, high, step } = demo.range;
    Object.assign($("asked"), { min: low, max: high, step });
    $("low").textContent = low;
    $("high").textContent = high;
  }
  summarise();
}

// What the slider and the plot reach.
function rangeOf({ asks, limits }, { lowest, highest }) {
  if (!asks) return { asks, lowest, highest, hue: () => hue(1) };
  const span = limits[1] - limits[0];
  const step = span > 1000 ? 20 : 5;
  const low = Math.ceil(limits[0] / step) * step, high = Math.floor(limits[1] / step) * step;
  return {
    asks, low, high, step, lowest: low, highest: high, bin: 5 * step,
    hue: asked => hue((asked - low) / (high - low)),
  };
}

function ask(value) {
  if (!demo.range.asks) return;
  demo.asked = clamp(value, demo.range.low, demo.range.high);
  $("asked").value = demo.asked;
  $("asked-value").textContent = demo.asked;
}

function begin() {
  demo.number += 1;
  demo.random = generator(demo.number);
  demo.task = new demo.Task(demo.random, demo.agent.horizon);
  demo.command = demo.policy.command(demo.asked);
  demo.trail = [];
  demo.mine = demo.taken;
  wait = 0;
  $("number").textContent = demo.number;
  $("end").textContent = "";
}

function step() {
  const { task, policy, command, random } = demo;
  const action = demo.taken ? task.steered(demo.keys) : policy.act(task.obs(), command, random);
  const reward = task.step(action);
  demo.command = policy.after(command, reward);
  const at = task.trace();
  if (at && task.steps % 3 === 0) demo.trail.push(at);
  if (!task.over) return;
  const { asked, trail, mine } = demo;
  demo.episodes.push({ asked, obtained: task.total, trail, mine });
  $("end").textContent = `${task.end}: ${Math.round(task.total)}`;
  summarise();
  wait = REST;
}

function next() {
  if (demo.sweeping && demo.range.asks) {
    const { low, high, step } = demo.range;
    const share = demo.number * 0.381966 % 1; // evenly, in no order
    ask(low + Math.round((high - low) * share / step) * step);
  }
  begin();
}

function advance(seconds) {
  const speed = SPEEDS[demo.speed], isFastest = demo.speed === SPEEDS.length - 1;
  if (demo.task.over) {
    wait -= seconds * speed;
    if (wait <= 0) next();
  }
  owed = Math.min(owed + seconds * demo.Task.fps * speed, 8 * speed);
  const end = performance.now() + 14;
  while (owed >= 1 && performance.now() < end) {
    owed -= 1;
    if (!demo.task.over) step();
    else if (isFastest) next();
  }
}

function summarise() {
  const own = demo.episodes.filter(each => !each.mine);
  const same = own.filter(each => each.asked === demo.asked).map(each => each.obtained);
  let text = own.length === 1 ? "1 episode" : `${own.length} episodes`;
  if (own.length === 0) text = "no episode has ended yet";
  if (same.length > 0) {
    text += demo.range.asks ? `. Asked for ${demo.asked}, obtained ` : ", return ";
    text += Math.round(mean(same));
    if (same.length > 1) text += ` on average of ${same.length}`;
  }
  $("summary").textContent = text;
}

// Drawing

const STARS = (random => Array.from(
  { length: 90 }, () => [random(), random() * 0.7, 0.4 + random()]))(generator(7));

function drawScene() {
  const [c, width, height] = context($("scene")), { view } = demo.Task, k = width / view.width;
  const sky = c.createLinearGradient(0, 0, 0, height);
  sky.addColorStop(0, colours["sky-top"]);
  sky.addColorStop(1, colours["sky-low"]);
  c.fillStyle = sky;
  c.fillRect(0, 0, width, height);
  c.fillStyle = colours.star;
  for (const [x, y, r] of STARS) {
    c.globalAlpha = r / 1.5;
    c.fillRect(x * width, y * height, r, r);
  }
  c.globalAlpha = 1;
  c.save();
  c.translate(width / 2 - view.x * k, height + view.y * k);
  c.scale(k, -k);
  c.lineJoin = c.lineCap = "round";
  drawTrails(c);
  demo.task.draw(c, colours);
  c.restore();
}

function drawTrails(c) {
  demo.episodes.slice(-TRAILS).forEach(({ trail, asked }, i) => {
    c.globalAlpha = 0.08 + 0.4 * (i + 1) / TRAILS;
    drawLine(c, demo.range.hue(asked), 0.05, trail);
  });
  c.globalAlpha = 0.9;
  drawLine(c, demo.range.hue(demo.asked), 0.07, demo.trail);
  c.globalAlpha = 1;
}

function frame(now) {
  const seconds = Math.min((now - before) / 1000, 0.1);
  before = now;
  if (!demo.paused) advance(seconds);
  $("step").textContent = demo.task.steps;
  $("so-far").textContent = Math.round(demo.task.total);
  drawScene();
  drawPlot($("plot"), demo);
  requestAnimationFrame(frame);
}

// The address: #asked=100, and agent=NAME unless it is the first

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const name = given.get("agent") || AGENTS[0].name;
  if (demo.agent === null || demo.agent.name !== name) choose(name);
  const asked = Number(given.get("asked") ?? NaN);
  ask(Number.isFinite(asked) ? asked : demo.range.high);
  begin();
  summarise();
}

function writeAddress() {
  const words = [];
  if (demo.agent !== AGENTS[0]) words.push(`agent=${demo.agent.name}`);
  if (demo.range.asks) words.push(`asked=${demo.asked}`);
  history.replaceState(null, "", `#${words.join("&")}`);
}

// What the user does

function press(id, on) { $(id).setAttribute("aria-pressed", on); }

function setSweep(on) {
  demo.sweeping = on;
  press("sweep", on);
}

function setPause(on) {
  demo.paused = on;
  press("pause", on);
  $("pause").textContent = on ? "Go on" : "Pause";
}

function setSpeed(number) {
  demo.speed = number % SPEEDS.length;
  $("speed").textContent = ["1×", "4×", "fast"][demo.speed];
}

// The user steers, from the next episode on where the last has ended.
function takeOver(on) {
  demo.taken = on;
  demo.keys = {};
  press("take", on);
  document.body.dataset.taken = on;
  $("take").textContent = on ? "Give back" : "Take over";
  if (!on) return;
  demo.mine = true;
  setSpeed(0);
  setPause(false);
  $("asked").blur();
}

function askedByUser() {
  setPause(false);
  writeAddress();
  begin();
  summarise();
}

for (const { name, gamename } of AGENTS) {
  const label = name.includes(gamename) ? name : `${name} (${gamename})`;
  $("agent").append(new Option(label, name));
}
$("agent").addEventListener("change", () => {
  choose($("agent").value);
  ask(demo.range.high);
  askedByUser();
});
$("asked").addEventListener("input", () => {
  setSweep(false);
  ask(Number($("asked").value));
});
$("asked").addEventListener("change", askedByUser);
$("sweep").addEventListener("click", () => setSweep(!demo.sweeping));
$("speed").addEventListener("click", () => setSpeed(demo.speed + 1));
$("pause").addEventListener("click", () => setPause(!demo.paused));
$("take").addEventListener("click", () => takeOver(!demo.taken));
addEventListener("hashchange", readAddress);

const ON_KEY = {
  s: () => setSweep(!demo.sweeping),
  f: () => setSpeed(demo.speed + 1),
  n: next,
  t: () => takeOver(!demo.taken),
  " ": () => setPause(!demo.paused),
};

addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.toLowerCase();
  if (demo.taken && STEERING[key]) {
    demo.keys[STEERING[key]] = true;
    event.preventDefault();
    return;
  }
  const isTyping = event.target.tagName === "SELECT";
  const isPressing = key === " " && event.target.tagName === "BUTTON";
  if (!ON_KEY[key] || isTyping || isPressing) return;
  event.preventDefault();
  ON_KEY[key]();
});
addEventListener("keyup", event => { demo.keys[STEERING[event.key.toLowerCase()]] = false; });
addEventListener("blur", () => { demo.keys = {}; });

// On a phone a finger steers: on the left, the right, or between them, above.
function steerByFinger(event) {
  if (!demo.taken) return;
  const { left, width } = $("scene").getBoundingClientRect();
  const share = (event.clientX - left) / width;
  demo.keys = {};
  if (event.buttons === 0) return;
  if (share < 1 / 3) demo.keys.left = true;
  else if (share > 2 / 3) demo.keys.right = true;
  else demo.keys.up = true;
}
for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
  $("scene").addEventListener(name, steerByFinger);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);

readColours();
readAddress();
setPause(matchMedia("(prefers-reduced-motion: reduce)").matches);
requestAnimationFrame(now => {
  before = now;
  frame(now);
});
