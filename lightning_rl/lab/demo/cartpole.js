// CartPole-v1 of Gymnasium: a pole on a cart that is pushed to the left or to the right.
"use strict";

class CartPole {
  static about = "Each step that the pole stays upright brings 1.";
  static view = { x: 0, y: -1, width: 5.6 };
  static fps = 50;
  static lowest = 0;
  static highest = 500;

  // random: numbers in [0, 1)
  constructor(random, horizon = 500) {
    const small = () => 0.1 * random() - 0.05;
    this.horizon = horizon;
    this.start([small(), small(), small(), small()]);
  }

  // state: place and speed of the cart, angle and speed of the pole
  start(state) {
    Object.assign(this, { state, steps: 0, total: 0, over: false, end: "", pushed: 0 });
  }

  obs() { return this.state; }

  // action: 0 to the left, 1 to the right
  step(action) {
    const [x, speed, angle, turn] = this.state;
    const gravity = 9.8, pole = 0.1, whole = 1.1, length = 0.5, seconds = 0.02;
    const force = action === 1 ? 10 : -10;
    const sin = Math.sin(angle), cos = Math.cos(angle);
    const pushed = (force + pole * length * turn ** 2 * sin) / whole;
    const bent = (gravity * sin - cos * pushed) / (length * (4 / 3 - pole * cos ** 2 / whole));
    const moved = pushed - pole * length * bent * cos / whole;
    this.state = [
      x + seconds * speed, speed + seconds * moved, angle + seconds * turn, turn + seconds * bent,
    ];
    this.pushed = force;
    this.steps += 1;
    this.total += 1;
    if (Math.abs(this.state[2]) > 12 * 2 * Math.PI / 360) this.finish("fell");
    else if (Math.abs(this.state[0]) > 2.4) this.finish("left the track");
    else if (this.steps >= this.horizon) this.finish("still stands");
    return 1;
  }

  finish(end) {
    this.over = true;
    this.end = end;
  }

  // What a player's keys do; without any the last push goes on.
  steered(keys) {
    if (keys.left) return 0;
    if (keys.right) return 1;
    return this.pushed > 0 ? 1 : 0;
  }

  trace() { return null; }

  draw(c, colours) {
    const [x, , angle] = this.state;
    fillPath(c, colours["ground-deep"], [[-9, -9], [9, -9], [9, -0.2], [-9, -0.2]]);
    for (const edge of [-2.4, 2.4]) drawLine(c, colours.pad, 0.04, [[edge, -0.2], [edge, 0.1]]);
    if (!this.over && this.pushed) {
      const way = Math.sign(this.pushed), at = x - way * 0.3;
      drawLine(c, colours.flame, 0.08, [[at, -0.05], [at - way * 0.25, -0.05]]);
    }
    fillPath(c, colours.hull, [[x - 0.3, -0.2], [x + 0.3, -0.2], [x + 0.3, 0.1], [x - 0.3, 0.1]]);
    drawLine(c, colours.accent, 0.09, [[x, 0.05], [x + Math.sin(angle), 0.05 + Math.cos(angle)]]);
    fillCircle(c, colours.ink, [x, 0.05], 0.05);
  }
}
