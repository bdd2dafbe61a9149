// What is drawn on canvases, and in which colours.
"use strict";

const COLOURS = [
  "ink", "soft", "line", "card", "accent", "sky-top", "sky-low", "ground", "ground-deep", "pad",
  "hull", "leg", "flame", "star", "low", "high", "grid",
];
const colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOURS) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

// A share in 0 .. 1 as a colour between that of the lowest and that of the highest command.
function hue(share) {
  return `color-mix(in oklab, ${colours.high} ${Math.round(100 * share)}%, ${colours.low})`;
}

// The context of a canvas, as large as the screen shows it; its width and height in CSS pixels.
function context(canvas) {
  const { width, height } = canvas.getBoundingClientRect(), dense = window.devicePixelRatio || 1;
  const w = Math.round(width * dense), h = Math.round(height * dense);
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const c = canvas.getContext("2d");
  c.setTransform(dense, 0, 0, dense, 0, 0);
  return [c, width, height];
}

function tracePath(c, points) {
  c.beginPath();
  points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
}

function drawLine(c, colour, thick, points) {
  c.strokeStyle = colour;
  c.lineWidth = thick;
  tracePath(c, points);
  c.stroke();
}

function fillPath(c, colour, points) {
  c.fillStyle = colour;
  tracePath(c, points);
  c.fill();
}

function fillCircle(c, colour, [x, y], radius) {
  c.fillStyle = colour;
  c.beginPath();
  c.arc(x, y, radius, 0, 2 * Math.PI);
  c.fill();
}
