// LunarLander-v3 of Gymnasium: the same bodies, engines, noise, rewards and ends, on the physics
// of physics.js.
"use strict";

const SCALE = 30, WIDTH = 600 / SCALE, HEIGHT = 400 / SCALE, PAD = HEIGHT / 4, FPS = 50;
const scaled = points => points.map(([x, y]) => [x / SCALE, y / SCALE]);
const HULL = scaled([[14, 17], [-14, 17], [-17, 0], [-17, -10], [17, -10], [17, 0]]);
const LEG = scaled([[-2, -8], [2, -8], [2, 8], [-2, 8]]);

class Lander {
  static about = "A crash costs 100, a soft landing between the flags brings 200 or more.";
  static view = { x: WIDTH / 2, y: 0, width: WIDTH };
  static fps = FPS;
  static lowest = -300;
  static highest = 300;

  // random: numbers in [0, 1)
  constructor(random, horizon = 1000) {
    this.random = random;
    this.horizon = horizon;
    const between = (low, high) => low + (high - low) * random();
    const heights = Array.from({ length: 12 }, () => between(0, HEIGHT / 2));
    this.start(heights, [between(-1000, 1000), between(-1000, 1000)]);
  }

  // heights: of twelve points of the ground, before it is smoothed; push: a force in the first step
  start(heights, push) {
    for (let i = 3; i <= 7; i++) heights[i] = PAD;
    const smooth = i => 0.33 * (heights[(i + 11) % 12] + heights[i] + heights[i + 1]);
    const ground = Array.from({ length: 11 }, (_, i) => [WIDTH / 10 * i, smooth(i)]);
    const hull = new Body(HULL, 5, 0.1, WIDTH / 2, HEIGHT, 0);
    hull.force = push;
    const legs = [-1, 1].map(
      side => new Body(LEG, 1, 0.2, WIDTH / 2 - side * 20 / SCALE, HEIGHT, side * 0.05));
    // Box2D counts a joint's angle from that at the start: the limits 0.4 .. 0.9 are these between
    // the bodies.
    const joint = (leg, side, low, high) => new Joint(
      hull, leg, [0, 0], [side * 20 / SCALE, 18 / SCALE], low, high, 0.3 * side, 40);
    const joints = [joint(legs[0], -1, 0.35, 0.85), joint(legs[1], 1, -0.85, -0.35)];
    this.world = new World([hull, ...legs], joints, ground, -10, 0.1);
    Object.assign(this, { hull, legs, ground, over: false, end: "", shaping: null, fired: null });
    this.flame = 0;
    this.step(0, this.dispersion());
    this.steps = this.total = 0;
  }

  dispersion() { return [0, 0].map(() => (2 * this.random() - 1) / SCALE); }

  obs() {
    const { hull, legs } = this, [x, y] = hull.origin;
    return [
      (x - WIDTH / 2) / (WIDTH / 2),
      (y - PAD - 18 / SCALE) / (HEIGHT / 2),
      hull.v[0] * WIDTH / 2 / FPS,
      hull.v[1] * HEIGHT / 2 / FPS,
      hull.angle,
      20 * hull.w / FPS,
      Number(legs[0].touches),
      Number(legs[1].touches),
    ];
  }

  // action: 0 nothing, 1 left, 2 main, 3 right engine; noise: of the engines
  step(action, noise = this.dispersion()) {
    const fuel = this.fire(action, noise);
    this.world.step(1 / FPS);
    const [x, y, vx, vy, angle, , left, right] = this.obs();
    const off = Math.hypot(x, y) + Math.hypot(vx, vy) + Math.abs(angle);
    const shaping = -100 * off + 10 * (left + right);
    let reward = this.shaping === null ? 0 : shaping - this.shaping - fuel;
    this.shaping = shaping;
    if (this.hull.touches) reward = this.finish("crashed", -100);
    else if (Math.abs(x) >= 1) reward = this.finish("left the field", -100);
    if (this.world.asleep) reward = this.finish("landed", 100);
    this.steps += 1;
    this.total += reward;
    if (!this.over && this.steps >= this.horizon) this.finish("out of time", 0);
    return reward;
  }

  finish(end, reward) {
    this.over = true;
    this.end = end;
    return reward;
  }

  // Fires an engine; what its fuel costs.
  fire(action, noise) {
    this.fired = null;
    if (action === 0) return 0;
    const { hull } = this, sin = Math.sin(hull.angle), cos = Math.cos(hull.angle);
    const [x, y] = hull.origin, isMain = action === 2;
    let push, at;
    if (isMain) {
      const down = 4 / SCALE + 2 * noise[0];
      push = [sin * down - cos * noise[1], -cos * down - sin * noise[1]];
      at = [x + push[0], y + push[1]];
    } else {
      const aside = 3 * noise[1] + (action - 2) * 12 / SCALE;
      push = [sin * noise[0] - cos * aside, -cos * noise[0] - sin * aside];
      at = [x + push[0] - sin * 17 / SCALE, y + push[1] + cos * 14 / SCALE];
    }
    this.fired = { push, at, isMain };
    hull.push(times(isMain ? 13 : 0.6, push), minus(at, hull.c), -1);
    return isMain ? 0.3 : 0.03;
  }

  // What a player's keys do.
  steered(keys) {
    if (keys.up) return 2;
    if (keys.left) return 1;
    if (keys.right) return 3;
    return 0;
  }

  trace() { return this.hull.origin; }

  draw(c, colours) {
    const soil = c.createLinearGradient(0, 7, 0, 0);
    soil.addColorStop(0, colours.ground);
    soil.addColorStop(1, colours["ground-deep"]);
    fillPath(c, soil, [[0, 0], ...this.ground, [WIDTH, 0]]);
    for (const [x, way] of [[WIDTH * 0.4, 1], [WIDTH * 0.6, -1]]) {
      drawLine(c, colours.ink, 0.06, [[x, PAD], [x, PAD + 1.5]]);
      fillPath(c, colours.pad, [[x, PAD + 1.5], [x + way * 0.75, PAD + 1.22], [x, PAD + 0.95]]);
    }
    this.drawFlame(c, colours);
    for (const leg of this.legs) {
      fillPath(c, leg.touches ? colours.high : colours.leg, leg.corners());
    }
    fillPath(c, colours.hull, this.hull.corners());
    drawLine(c, colours.card, 0.04, [...this.hull.corners(), this.hull.corners()[0]]);
    fillCircle(c, colours["sky-low"], this.hull.toWorld([0, 0.16]), 0.15);
  }

  drawFlame(c, colours) {
    if (!this.fired || this.over) return;
    const { push, at, isMain } = this.fired;
    const length = (isMain ? 6.5 : 2.2) * (0.8 + 0.4 * Math.random());
    const tip = plus(at, times(length, push));
    const glow = c.createLinearGradient(...at, ...tip);
    glow.addColorStop(0, colours.flame);
    glow.addColorStop(1, "transparent");
    drawLine(c, glow, isMain ? 0.42 : 0.2, [at, tip]);
  }
}
