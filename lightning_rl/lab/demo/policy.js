// The trained policy: layers of ReLUs, each times a gate that the command opens; its actions are drawn from a softmax.
"use strict";

const floats = text => new Float32Array(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);

// Uniform numbers in [0, 1) from a seed (mulberry32).
function generator(seed) {
  return () => {
    seed = (seed + 0x6D2B79F5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Linear {
  constructor({ weight, bias }) {
    this.weight = floats(weight);
    this.bias = floats(bias);
  }

  apply(x) {
    const { weight, bias } = this;
    return Array.from(bias, (b, row) => {
      let sum = b;
      for (let i = 0; i < x.length; i++) sum += weight[row * x.length + i] * x[i];
      return sum;
    });
  }
}

// Observations in standard deviations from their mean.
const normalised = (obs, { shift, scale, limit }) => obs.map((z, i) => clamp((z - shift[i]) * scale[i], -limit, limit));

class Policy {
  constructor(agent) {
    Object.assign(this, agent, { layers: agent.layers.map(each => new Linear(each)), gates: new Linear(agent.gates) });
  }

  get limits() { return [this.calibration[0].asked, this.calibration.at(-1).asked]; }

  // The command, and how much louder it is said than it was taught, that obtain a return on average.
  command(asked) {
    const nearest = this.calibration.reduce((a, b) => Math.abs(b.asked - asked) < Math.abs(a.asked - asked) ? b : a);
    const table = this.calibration.filter(each => each.guidance === nearest.guidance);
    const above = table.findIndex(each => each.asked >= asked);
    if (above <= 0) return { first: table.at(above).first, guidance: nearest.guidance };
    const [a, b] = [table[above - 1], table[above]], share = (asked - a.asked) / (b.asked - a.asked);
    return { first: a.first + share * (b.first - a.first), guidance: nearest.guidance };
  }

  network(obs, first) {
    const scaled = clamp((first - this.shift) * this.scale, -this.limit, this.limit);
    const gate = this.gates.apply([scaled]).map(z => this.gateScale / (1 + Math.exp(-z)));
    let x = this.seen ? normalised(obs, this.seen) : obs, at = 0;
    for (const layer of this.layers.slice(0, -1)) {
      x = layer.apply(x).map((z, i) => Math.max(0, z) * gate[at + i]);
      at += x.length;
    }
    return this.layers.at(-1).apply(x);
  }

  logits(obs, { first, guidance }) {
    const asked = this.network(obs, first);
    if (!guidance) return asked;
    const usual = this.network(obs, this.usual);
    return asked.map((z, i) => z + guidance * (z - usual[i]));
  }

  // An action, drawn with Gumbel noise.
  act(obs, command, random) {
    const noisy = this.logits(obs, command).map(z => z - Math.log(-Math.log(random() || 1e-20)));
    return noisy.indexOf(Math.max(...noisy));
  }
}
