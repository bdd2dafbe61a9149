// The toy of upside_down.md: a corridor of five cells, its examples, and a policy that counts them.
const EXITS = {1: 5, 5: 10}, COST = 1, START = 3;
const EPISODES = ["LL", "RLLL", "RR", "LRRR"];

// The steps of a walk from the start: state, action, reward, and what was left before each.
function walk(actions) {
  const steps = [];
  let cell = START;
  for (const action of actions) {
    const after = cell + (action === "R" ? 1 : -1);
    steps.push({state: cell, action, reward: (EXITS[after] || 0) - COST});
    cell = after;
  }
  steps.forEach((step, at) => {
    step.toGo = steps.slice(at).reduce((sum, each) => sum + each.reward, 0);
    step.left = steps.length - at;
  });
  return steps;
}

// The example in this state that is nearest to the command.
function nearest(examples, state, toGo, left) {
  const distance = each => Math.abs(each.toGo - toGo) + Math.abs(each.left - left);
  const here = examples.filter(each => each.state === state);
  return here.reduce((best, each) => distance(each) < distance(best) ? each : best, here[0]);
}

// What the policy does with a command: its steps, until an exit or for twelve steps.
function act(examples, toGo, left) {
  const steps = [];
  let cell = START;
  while (!(cell in EXITS) && steps.length < 12) {
    const example = nearest(examples, cell, toGo, left);
    if (!example) break;
    const after = cell + (example.action === "R" ? 1 : -1);
    const reward = (EXITS[after] || 0) - COST;
    const known = example.toGo === toGo && example.left === left;
    steps.push({state: cell, toGo, left, action: example.action, reward, known});
    toGo -= reward;
    left = Math.max(left - 1, 1);
    cell = after;
  }
  return steps;
}

function randomWalk() {
  let cell = START, actions = "";
  while (!(cell in EXITS)) {
    const right = Math.random() < 0.5;
    actions += right ? "R" : "L";
    cell += right ? 1 : -1;
  }
  return actions;
}

function show(root) {
  root.innerHTML = `
    <p><button class="md-button" id="toy-more">Play a random episode</button> <button class="md-button" id="toy-reset">Start again</button>
       <span id="toy-count"></span></p>
    <p><label>Return <input id="toy-return" type="range" min="-4" max="8" value="8">
       <b id="toy-return-is"></b></label>
       <label>within steps <input id="toy-steps" type="range" min="2" max="10" step="2" value="2">
       <b id="toy-steps-is"></b></label></p>
    <table><thead><tr><th>cell</th><th>return left</th><th>steps left</th><th>action</th><th>reward</th><th></th></tr></thead>
       <tbody id="toy-path"></tbody></table>
    <p id="toy-got" role="status"></p>`;
  const part = name => root.querySelector(`#toy-${name}`);
  let episodes = [...EPISODES];
  const draw = () => {
    const examples = episodes.flatMap(walk);
    const toGo = Number(part("return").value), left = Number(part("steps").value);
    const steps = act(examples, toGo, left);
    part("count").textContent = `${episodes.length} episodes, ${examples.length} examples`;
    part("return-is").textContent = toGo;
    part("steps-is").textContent = left;
    part("path").innerHTML = steps.map(each => `<tr><td>${each.state}</td><td>${each.toGo}</td><td>${each.left}</td>
      <td>${each.action === "R" ? "right" : "left"}</td><td>${each.reward}</td>
      <td>${each.known ? "" : "no such example: the nearest one"}</td></tr>`).join("");
    const got = steps.reduce((sum, each) => sum + each.reward, 0);
    part("got").textContent = `Asked for ${toGo} within ${left} steps, obtained ${got} in ${steps.length}.`;
  };
  part("more").onclick = () => { episodes.push(randomWalk()); draw(); };
  part("reset").onclick = () => { episodes = [...EPISODES]; draw(); };
  part("return").oninput = part("steps").oninput = draw;
  draw();
}

if (typeof document !== "undefined") show(document.getElementById("toy"));
