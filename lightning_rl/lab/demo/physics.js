// Rigid bodies as Box2D 2.3 moves them: polygons above a ground of line segments, held together by
// revolute joints with a motor and limits. Left out: continuous collision, so that a foot touches
// the ground up to one step late.
"use strict";

const SLOP = 0.005, ANGULAR_SLOP = 2 / 180 * Math.PI, RADIUS = 0.02, BAUMGARTE = 0.2;
const MAX_CORRECTION = 0.2, MAX_ANGULAR_CORRECTION = 8 / 180 * Math.PI;
const SLEEP_SPEED = 0.01, SLEEP_TURN = 2 / 180 * Math.PI, SLEEP_AFTER = 0.5;

const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const cross = (a, b) => a[0] * b[1] - a[1] * b[0];
const plus = (a, b) => [a[0] + b[0], a[1] + b[1]];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
const times = (k, a) => [k * a[0], k * a[1]];

class Body {
  // points: counter-clockwise, around the origin of the body; x, y: where that is at first.
  constructor(points, density, friction, x, y, angle) {
    this.friction = friction;
    this.angle = angle;
    this.v = [0, 0];
    this.w = 0;
    this.force = [0, 0];
    this.asleepFor = 0;
    let area = 0, centre = [0, 0], inertia = 0;
    points.forEach((a, i) => {
      const b = points[(i + 1) % points.length], d = cross(a, b);
      area += d / 2;
      centre = [centre[0] + d / 6 * (a[0] + b[0]), centre[1] + d / 6 * (a[1] + b[1])];
      inertia += d / 12 * (dot(a, a) + dot(a, b) + dot(b, b));
    });
    this.centre = centre.map(c => c / area);
    this.invMass = 1 / (area * density);
    this.invInertia = 1 / (density * (inertia - area * dot(this.centre, this.centre)));
    this.points = points.map(p => minus(p, this.centre)); // around the centre of mass
    this.c = plus([x, y], this.rotated(this.centre)); // where that is
  }

  rotated(p) {
    const s = Math.sin(this.angle), c = Math.cos(this.angle);
    return [c * p[0] - s * p[1], s * p[0] + c * p[1]];
  }

  get origin() { return minus(this.c, this.rotated(this.centre)); }

  toWorld(p) { return plus(this.c, this.rotated(p)); }

  toLocal(p) {
    const [x, y] = minus(p, this.c), s = Math.sin(this.angle), c = Math.cos(this.angle);
    return [c * x + s * y, c * y - s * x];
  }

  corners() {
    return this.points.map(p => this.toWorld(p));
  }

  // An impulse p at the arm r from the centre of mass.
  push(p, r, sign) {
    this.v[0] += sign * this.invMass * p[0];
    this.v[1] += sign * this.invMass * p[1];
    this.w += sign * this.invInertia * cross(r, p);
  }

  shift(p, r, sign) {
    this.c[0] += sign * this.invMass * p[0];
    this.c[1] += sign * this.invMass * p[1];
    this.angle += sign * this.invInertia * cross(r, p);
  }

  velocityAt(r) { return [this.v[0] - this.w * r[1], this.v[1] + this.w * r[0]]; }
}

class Joint {
  // The angle between two bodies stays within low .. high; a motor of limited torque turns it at a
  // speed.
  constructor(a, b, anchorA, anchorB, low, high, speed, torque) {
    Object.assign(this, { a, b, low, high, speed, torque });
    this.localA = minus(anchorA, a.centre);
    this.localB = minus(anchorB, b.centre);
    this.impulse = [0, 0, 0];
    this.motor = 0;
    this.at = "free";
  }

  arms() { return [this.a.rotated(this.localA), this.b.rotated(this.localB)]; }

  begin() {
    const { a, b } = this, [ra, rb] = this.arms(), angle = b.angle - a.angle;
    const m = a.invMass + b.invMass, ia = a.invInertia, ib = b.invInertia;
    Object.assign(this, { ra, rb });
    this.k = [
      m + ia * ra[1] ** 2 + ib * rb[1] ** 2,
      -ia * ra[0] * ra[1] - ib * rb[0] * rb[1],
      -ia * ra[1] - ib * rb[1],
      m + ia * ra[0] ** 2 + ib * rb[0] ** 2,
      ia * ra[0] + ib * rb[0],
      ia + ib,
    ];
    const at = angle <= this.low ? "low" : angle >= this.high ? "high" : "free";
    if (at !== this.at || at === "free") this.impulse[2] = 0;
    this.at = at;
    this.apply(this.impulse, this.motor);
  }

  apply([x, y, turn], motor) {
    for (const [body, r, sign] of [[this.a, this.ra, -1], [this.b, this.rb, 1]]) {
      body.push([x, y], r, sign);
      body.w += sign * body.invInertia * (turn + motor);
    }
  }

  solve2(x, y) {
    const [xx, xy, , yy] = this.k, det = xx * yy - xy * xy;
    return [(yy * x - xy * y) / det, (xx * y - xy * x) / det];
  }

  solve3(x, y, z) {
    const [xx, xy, xz, yy, yz, zz] = this.k;
    const a = yy * zz - yz * yz, b = xz * yz - xy * zz, c = xy * yz - xz * yy;
    const det = xx * a + xy * b + xz * c;
    return [
      (a * x + b * y + c * z) / det,
      (b * x + (xx * zz - xz * xz) * y + (xy * xz - xx * yz) * z) / det,
      (c * x + (xy * xz - xx * yz) * y + (xx * yy - xy * xy) * z) / det,
    ];
  }

  solveVelocity(dt) {
    const { a, b, impulse } = this, most = dt * this.torque;
    const motor = clamp(this.motor - (b.w - a.w - this.speed) / this.k[5], -most, most);
    this.apply([0, 0, 0], motor - this.motor);
    this.motor = motor;
    const slip = minus(b.velocityAt(this.rb), a.velocityAt(this.ra));
    let step = [...this.solve2(-slip[0], -slip[1]), 0];
    if (this.at !== "free") {
      step = this.solve3(-slip[0], -slip[1], a.w - b.w);
      const total = impulse[2] + step[2];
      if (this.at === "low" ? total < 0 : total > 0) { // the limit would pull: it lets go
        const pull = [impulse[2] * this.k[2], impulse[2] * this.k[4]];
        step = [...this.solve2(...minus(pull, slip)), -impulse[2]];
      }
    }
    step.forEach((each, i) => { impulse[i] += each; });
    this.apply(step, 0);
  }

  solvePosition() {
    const { a, b } = this, angle = b.angle - a.angle, m = a.invMass + b.invMass;
    const ia = a.invInertia, ib = b.invInertia;
    let off = 0;
    if (this.at !== "free") {
      off = this.at === "low" ? angle - this.low : this.high - angle;
      const way = this.at === "low" ? -1 : 1;
      const turn = way * clamp(off + ANGULAR_SLOP, -MAX_ANGULAR_CORRECTION, 0) / (ia + ib);
      a.angle -= ia * turn;
      b.angle += ib * turn;
    }
    const [ra, rb] = this.arms();
    const gap = [b.c[0] + rb[0] - a.c[0] - ra[0], b.c[1] + rb[1] - a.c[1] - ra[1]];
    this.k = [
      m + ia * ra[1] ** 2 + ib * rb[1] ** 2,
      -ia * ra[0] * ra[1] - ib * rb[0] * rb[1],
      0,
      m + ia * ra[0] ** 2 + ib * rb[0] ** 2,
    ];
    const p = this.solve2(-gap[0], -gap[1]);
    a.shift(p, ra, -1);
    b.shift(p, rb, 1);
    return Math.hypot(...gap) <= SLOP && -off <= ANGULAR_SLOP;
  }
}

// To the right of the way from a to b: outwards of a counter-clockwise polygon.
const normalOf = (a, b) => {
  const x = b[0] - a[0], y = b[1] - a[1], length = Math.hypot(x, y);
  return [y / length, -x / length];
};

// The part of the segment p q that lies between the ends of the face a b.
function clipped(p, q, a, b) {
  for (const [from, to] of [[a, b], [b, a]]) {
    const along = minus(to, from), u = dot(along, minus(p, from)), v = dot(along, minus(q, from));
    if (u < 0 && v < 0) return [];
    const at = u / (u - v), cut = [p[0] + at * (q[0] - p[0]), p[1] + at * (q[1] - p[1])];
    if (u < 0) p = cut;
    if (v < 0) q = cut;
  }
  return [p, q];
}

// Where a polygon touches a segment of the ground: {face, normal, points} with the face of the
// ground or of the polygon as reference, the normal away from the ground, and up to two points;
// null where they are apart.
function touching(corners, left, right) {
  const n = corners.length, up = normalOf(right, left);
  const above = Math.min(...corners.map(p => dot(up, minus(p, left))));
  if (above > RADIUS) return null;
  let best = -Infinity, face = 0, facing = 0, most = Infinity;
  for (let i = 0; i < n; i++) {
    const out = normalOf(corners[i], corners[(i + 1) % n]);
    const apart = Math.min(dot(out, minus(left, corners[i])), dot(out, minus(right, corners[i])));
    if (apart > RADIUS) return null;
    if (apart > best) [best, face] = [apart, i];
    if (dot(out, up) < most) [most, facing] = [dot(out, up), i];
  }
  const ofPolygon = best > 0.98 * above + 0.001, side = i => [corners[i], corners[(i + 1) % n]];
  const reference = ofPolygon ? side(face) : [right, left];
  const other = ofPolygon ? [left, right] : side(facing);
  const normal = normalOf(...reference), apart = p => dot(normal, minus(p, reference[0]));
  const points = clipped(...other, ...reference).filter(p => apart(p) <= RADIUS);
  if (points.length === 0) return null;
  return { ofPolygon, reference, normal: times(ofPolygon ? -1 : 1, normal), points, apart };
}

class World {
  // ground: a line of points from left to right.
  constructor(bodies, joints, ground, gravity, groundFriction) {
    Object.assign(this, { bodies, joints, ground, gravity, groundFriction });
    this.asleep = false;
    this.contacts = [];
  }

  // Finds the contacts of bodies where they are; body.touches says which have one.
  collide() {
    const before = new Map(this.contacts.map(each => [each.key, each]));
    this.contacts = [];
    this.bodies.forEach((body, number) => {
      const corners = body.corners(), across = corners.map(p => p[0]);
      const low = Math.min(...across), high = Math.max(...across);
      body.touches = false;
      for (let i = 0; i + 1 < this.ground.length; i++) {
        const [left, right] = [this.ground[i], this.ground[i + 1]];
        if (right[0] < low - RADIUS || left[0] > high + RADIUS) continue;
        const found = touching(corners, left, right);
        if (found === null) continue;
        body.touches = true;
        found.points.forEach((point, at) => {
          const { ofPolygon, normal, points } = found, start = found.reference[0];
          const key = `${number} ${i} ${ofPolygon} ${at} ${points.length}`, old = before.get(key);
          this.contacts.push({
            key, body, ofPolygon, normal, point, start,
            friction: Math.sqrt(body.friction * this.groundFriction),
            localPoint: body.toLocal(point),
            localStart: body.toLocal(start),
            localNormal: body.toLocal(plus(normal, body.c)),
            push: old ? old.push : 0,
            drag: old ? old.drag : 0,
          });
        });
      }
    });
  }

  // How far a body is above the ground.
  depth(body) {
    const corners = body.corners();
    let depth = Infinity;
    for (let i = 0; i + 1 < this.ground.length; i++) {
      const found = touching(corners, this.ground[i], this.ground[i + 1]);
      if (found) depth = Math.min(depth, ...found.points.map(p => found.apart(p)));
    }
    return depth;
  }

  step(dt) {
    this.collide();
    const { bodies, joints, contacts } = this;
    for (const body of bodies) {
      body.v[0] += dt * body.invMass * body.force[0];
      body.v[1] += dt * (this.gravity + body.invMass * body.force[1]);
      body.force = [0, 0];
    }
    for (const each of contacts) this.prepare(each);
    for (const joint of joints) joint.begin();
    for (let k = 0; k < 180; k++) {
      for (const joint of joints) joint.solveVelocity(dt);
      for (const each of contacts) this.solveContact(each);
    }
    for (const body of bodies) {
      body.c[0] += dt * body.v[0];
      body.c[1] += dt * body.v[1];
      body.angle += dt * body.w;
    }
    let solved = false;
    for (let k = 0; k < 60 && !solved; k++) {
      const deepest = Math.min(0, ...contacts.map(each => this.separate(each)));
      solved = joints.map(joint => joint.solvePosition()).every(Boolean) && deepest >= -3 * SLOP;
    }
    this.rest(dt, solved);
    for (const body of bodies) body.touches ||= this.depth(body) < SLOP;
  }

  prepare(each) {
    const { body, normal } = each, tangent = [normal[1], -normal[0]];
    const gap = dot(normal, minus(each.point, each.start)); // the forces act half way
    each.r = minus(minus(each.point, times(gap / 2, normal)), body.c);
    each.tangent = tangent;
    const mass = axis => 1 / (body.invMass + body.invInertia * cross(each.r, axis) ** 2);
    [each.normalMass, each.tangentMass] = [mass(normal), mass(tangent)];
    body.push(plus(times(each.push, normal), times(each.drag, tangent)), each.r, 1);
  }

  solveContact(each) {
    const { body, normal, tangent, r } = each, most = each.friction * each.push;
    const slip = dot(body.velocityAt(r), tangent);
    const drag = clamp(each.drag - each.tangentMass * slip, -most, most);
    body.push(times(drag - each.drag, tangent), r, 1);
    each.drag = drag;
    const push = Math.max(0, each.push - each.normalMass * dot(body.velocityAt(r), normal));
    body.push(times(push - each.push, normal), r, 1);
    each.push = push;
  }

  // Moves a body out of the ground; how far apart they are.
  separate(each) {
    const { body } = each, normal = each.ofPolygon ? body.rotated(each.localNormal) : each.normal;
    let point = body.toWorld(each.localPoint), start = each.start;
    if (each.ofPolygon) [point, start] = [body.toWorld(each.localStart), each.point];
    const apart = dot(normal, minus(point, start)) - RADIUS;
    const r = minus(each.ofPolygon ? each.point : point, body.c);
    const k = body.invMass + body.invInertia * cross(r, normal) ** 2;
    const p = -clamp(BAUMGARTE * (apart + SLOP), -MAX_CORRECTION, 0) / k;
    body.shift(times(p, normal), r, 1);
    return apart;
  }

  // All sleep when all have been slow for long enough.
  rest(dt, solved) {
    for (const body of this.bodies) {
      const slow = Math.abs(body.w) <= SLEEP_TURN && dot(body.v, body.v) <= SLEEP_SPEED ** 2;
      body.asleepFor = slow ? body.asleepFor + dt : 0;
    }
    this.asleep = solved && this.bodies.every(body => body.asleepFor >= SLEEP_AFTER);
  }
}
