// Pendulum-v1 of Gymnasium: a rod on an axle, too weak to be lifted at once.
"use strict";

class Pendulum {
  static about = "Each step costs most where the rod hangs, nothing where it stands still.";
  static view = { x: 0, y: -1.2, width: 3.6 };
  static fps = 20;
  static lowest = -1700;
  static highest = 0;

  // random: numbers in [0, 1)
  constructor(random, horizon = 200) {
    this.horizon = horizon;
    this.start([(2 * random() - 1) * Math.PI, 2 * random() - 1]);
  }

  // state: angle from the top, and speed
  start(state) {
    Object.assign(this, { state, steps: 0, total: 0, over: false, end: "", torque: 0 });
  }

  obs() {
    const [angle, speed] = this.state;
    return [Math.cos(angle), Math.sin(angle), speed];
  }

  // action: a torque in -2 .. 2
  step(action) {
    const [angle, speed] = this.state, seconds = 0.05;
    const torque = clamp(action, -2, 2);
    const turn = 2 * Math.PI;
    const tilt = ((angle + Math.PI) % turn + turn) % turn - Math.PI; // within half a turn
    const cost = tilt ** 2 + 0.1 * speed ** 2 + 0.001 * torque ** 2;
    const faster = clamp(speed + (15 * Math.sin(angle) + 3 * torque) * seconds, -8, 8);
    this.state = [angle + faster * seconds, faster];
    this.torque = torque;
    this.steps += 1;
    this.total -= cost;
    if (this.steps >= this.horizon) {
      this.over = true;
      this.end = "time is up";
    }
    return -cost;
  }

  // What a player's keys do.
  steered(keys) {
    if (keys.left) return 2;
    if (keys.right) return -2;
    return 0;
  }

  trace() { return null; }

  draw(c, colours) {
    const angle = this.state[0], size = Math.abs(this.torque) / 2;
    drawLine(c, colours.grid, 0.02, [[0, 0], [0, 1.1]]);
    drawLine(c, colours.hull, 0.2, [[0, 0], [-Math.sin(angle), Math.cos(angle)]]);
    fillCircle(c, colours.ink, [0, 0], 0.06);
    if (this.over || size < 0.02) return;
    const left = this.torque > 0, middle = Math.PI / 2;
    c.strokeStyle = colours.flame;
    c.lineWidth = 0.05;
    c.beginPath();
    c.arc(0, 0, 0.28, left ? middle : middle - 2 * size, left ? middle + 2 * size : middle);
    c.stroke();
  }
}
