// A trained policy: linear layers with activations, whose gates a command opens, and what its
// output makes of actions.
"use strict";

const floats = text => new Float32Array(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);

const ACTIVATIONS = { relu: z => Math.max(0, z), tanh: Math.tanh };

// Uniform numbers in [0, 1) from a seed (mulberry32).
function generator(seed) {
  return () => {
    seed = (seed + 0x6D2B79F5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// A standard normal number (Box and Muller).
function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

class Linear {
  constructor({ weight, bias }) {
    this.weight = floats(weight);
    this.bias = floats(bias);
  }

  apply(x) {
    const { weight, bias } = this;
    return Array.from(bias, (sum, row) => {
      for (let i = 0; i < x.length; i++) sum += weight[row * x.length + i] * x[i];
      return sum;
    });
  }
}

class Policy {
  // agent: as page.py writes it
  constructor(agent) {
    Object.assign(this, agent);
    this.layers = agent.layers.map(each => new Linear(each));
    if (this.asks) this.gates = new Linear(agent.gates);
  }

  // What it can be asked for; null: it takes no command.
  get limits() {
    return this.asks && [this.calibration[0].asked, this.calibration.at(-1).asked];
  }

  // The numbers that obtain a return on average, and how much louder they are said than they were
  // taught.
  command(asked) {
    if (!this.asks) return null;
    const distance = each => Math.abs(each.asked - asked);
    const nearest = this.calibration.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    const { guidance } = nearest;
    const table = this.calibration.filter(each => each.guidance === guidance);
    const above = table.findIndex(each => each.asked >= asked);
    if (above <= 0) return { numbers: [table.at(above).first, ...this.following], guidance };
    const a = table[above - 1], b = table[above];
    const share = (asked - a.asked) / (b.asked - a.asked);
    return { numbers: [a.first + share * (b.first - a.first), ...this.following], guidance };
  }

  // The command of the next step.
  after(command, reward) {
    if (!command || !this.rule) return command;
    const [first, ...others] = command.numbers, { gamma, highest, countsSteps } = this.rule;
    const left = Math.min((first - reward) / gamma, highest);
    const following = countsSteps ? others.map(z => Math.max(z - 1, 1)) : others;
    return { ...command, numbers: [left, ...following] };
  }

  network(obs, numbers) {
    let x = obs, at = 0;
    if (this.seen) {
      const { shift, scale, limit } = this.seen;
      x = obs.map((z, i) => clamp((z - shift[i]) * scale[i], -limit, limit));
    }
    let gate = [];
    if (this.asks) {
      const { scale, shift, limit } = this;
      const scaled = numbers.map((z, i) => clamp((z - shift[i]) * scale[i], -limit, limit));
      gate = this.gates.apply(scaled).map(z => this.gateScale / (1 + Math.exp(-z)));
    }
    this.activations.forEach((name, layer) => {
      x = this.layers[layer].apply(x).map(ACTIVATIONS[name]);
      if (layer >= this.gatedLayers) return;
      x = x.map((z, i) => z * gate[at + i]);
      at += x.length;
    });
    return this.layers.at(-1).apply(x);
  }

  output(obs, command) {
    if (!this.asks) return this.network(obs);
    const asked = this.network(obs, command.numbers);
    if (!command.guidance) return asked;
    const following = command.numbers.slice(1);
    const first = this.usual[0] + this.usual[1] * following.reduce((a, b) => a + b, 0);
    const usual = this.network(obs, [first, ...following]);
    const guided = asked.map((z, i) => z + command.guidance * (z - usual[i]));
    return this.actions === "normal" ? [guided[0], asked[1]] : guided; // the spread stays
  }

  // An action, drawn where the agent draws.
  act(obs, command, random) {
    const output = this.output(obs, command);
    const highest = values => values.indexOf(Math.max(...values));
    if (this.actions === "highest") return highest(output);
    if (this.actions === "drawn") {
      return highest(output.map(z => z - Math.log(-Math.log(random() || 1e-20))));
    }
    let share = Math.tanh(output[0]);
    if (this.actions === "normal") share += Math.exp(clamp(output[1], -3, 0.5)) * normal(random);
    const [low, high] = this.range;
    return clamp(low + (share + 1) / 2 * (high - low), low, high);
  }
}
