// LunarLander-v3 of Gymnasium: the same bodies, engines, noise, rewards and ends, on the physics above.
"use strict";

const SCALE = 30, WIDTH = 600 / SCALE, HEIGHT = 400 / SCALE, PAD = HEIGHT / 4, FPS = 50;
const scaled = points => points.map(([x, y]) => [x / SCALE, y / SCALE]);
const HULL = scaled([[14, 17], [-14, 17], [-17, 0], [-17, -10], [17, -10], [17, 0]]);
const LEG = scaled([[-2, -8], [2, -8], [2, 8], [-2, 8]]);

class Lander {
  // random: numbers in [0, 1)
  constructor(random) {
    this.random = random;
    const between = (low, high) => low + (high - low) * random();
    const height = Array.from({ length: 12 }, () => between(0, HEIGHT / 2));
    for (let i = 3; i <= 7; i++) height[i] = PAD;
    const smooth = i => 0.33 * (height[(i + 11) % 12] + height[i] + height[i + 1]);
    const ground = Array.from({ length: 11 }, (_, i) => [WIDTH / 10 * i, smooth(i)]);
    this.start(ground, [between(-1000, 1000), between(-1000, 1000)]);
  }

  start(ground, push) {
    const hull = new Body(HULL, 5, 0.1, WIDTH / 2, HEIGHT, 0);
    hull.force = push;
    const legs = [-1, 1].map(i => new Body(LEG, 1, 0.2, WIDTH / 2 - i * 20 / SCALE, HEIGHT, i * 0.05));
    // Box2D counts a joint's angle from that at the start, so the limits 0.4 .. 0.9 are these between the bodies
    const joints = [-1, 1].map((i, k) => new Joint(
      hull, legs[k], [0, 0], [i * 20 / SCALE, 18 / SCALE], i < 0 ? 0.35 : -0.85, i < 0 ? 0.85 : -0.35, 0.3 * i, 40));
    this.world = new World([hull, ...legs], joints, ground, -10, 0.1);
    Object.assign(this, { hull, legs, ground, steps: 0, total: 0, over: false, end: "", shaping: null, fired: null });
    this.step(0, this.dispersion());
    Object.assign(this, { steps: 0, total: 0 });
  }

  dispersion() { return [0, 0].map(() => (2 * this.random() - 1) / SCALE); }

  obs() {
    const { hull, legs } = this, [x, y] = hull.origin;
    return [
      (x - WIDTH / 2) / (WIDTH / 2), (y - PAD - 18 / SCALE) / (HEIGHT / 2), hull.v[0] * WIDTH / 2 / FPS, hull.v[1] * HEIGHT / 2 / FPS,
      hull.angle, 20 * hull.w / FPS, Number(legs[0].touches), Number(legs[1].touches),
    ];
  }

  // action: 0 nothing, 1 left, 2 main, 3 right engine; noise: of the engines
  step(action, noise = this.dispersion()) {
    const { hull } = this, sin = Math.sin(hull.angle), cos = Math.cos(hull.angle), [x, y] = hull.origin;
    let fire = null, fuel = 0;
    if (action === 2) {
      const down = 4 / SCALE + 2 * noise[0];
      const push = [sin * down - cos * noise[1], -cos * down - sin * noise[1]];
      [fire, fuel] = [{ push, power: 13, at: [x + push[0], y + push[1]] }, 0.3];
    } else if (action !== 0) {
      const aside = 3 * noise[1] + (action - 2) * 12 / SCALE;
      const push = [sin * noise[0] - cos * aside, -cos * noise[0] - sin * aside];
      [fire, fuel] = [{ push, power: 0.6, at: [x + push[0] - sin * 17 / SCALE, y + push[1] + cos * 14 / SCALE] }, 0.03];
    }
    if (fire) hull.push(fire.push.map(p => p * fire.power), minus(fire.at, hull.c), -1);
    this.fired = fire;
    this.world.step(1 / FPS);
    const obs = this.obs(), [ox, oy, vx, vy, angle, , left, right] = obs;
    const shaping = -100 * (Math.hypot(ox, oy) + Math.hypot(vx, vy) + Math.abs(angle)) + 10 * (left + right);
    let reward = this.shaping === null ? 0 : shaping - this.shaping - fuel;
    this.shaping = shaping;
    if (hull.touches || Math.abs(ox) >= 1) [this.over, this.end, reward] = [true, hull.touches ? "crashed" : "left the field", -100];
    if (this.world.asleep) [this.over, this.end, reward] = [true, "landed", 100];
    this.steps += 1;
    this.total += reward;
    if (!this.over && this.steps >= 1000) [this.over, this.end] = [true, "out of time"];
    return reward;
  }
}
