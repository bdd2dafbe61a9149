// The plot: what episodes obtained, over what was asked for, or over their number where nothing is.
"use strict";

const MARGIN = { left: 54, right: 16, top: 16, bottom: 42 };
const MEAN_OF = 3; // episodes, at least

const mean = values => values.reduce((a, b) => a + b, 0) / values.length;

// Episodes that were asked for about the same: [[asked, obtained, how many]], means.
function alike(episodes, width) {
  const found = new Map();
  for (const episode of episodes) {
    const at = Math.round(episode.asked / width);
    if (!found.has(at)) found.set(at, []);
    found.get(at).push(episode);
  }
  return [...found.values()].map(
    each => [mean(each.map(e => e.asked)), mean(each.map(e => e.obtained)), each.length]);
}

// Where numbers are on the canvas. asks: whether the agent takes commands, of low .. high.
function axesOf(width, height, { asks, low, high, lowest, highest }, count) {
  const span = highest - lowest;
  const bottom = asks ? low - 0.3 * span : lowest, top = highest + 0.1 * span;
  const [from, to] = asks ? [low - 0.03 * span, high + 0.03 * span] : [0, Math.max(20, count) + 1];
  const across = width - MARGIN.left - MARGIN.right, up = height - MARGIN.top - MARGIN.bottom;
  return {
    width, height, bottom, top, from, to,
    x: value => MARGIN.left + (value - from) / (to - from) * across,
    y: value => MARGIN.top + (top - clamp(value, bottom, top)) / (top - bottom) * up,
  };
}

// Round numbers between two: at most `most` of them.
function rounds(from, to, most) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
  const step = steps.find(each => (to - from) / each <= most);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

function drawAxes(c, axes, range) {
  const { x, y, width, height } = axes, { left, right, top, bottom } = MARGIN;
  c.font = "12px system-ui, sans-serif";
  c.fillStyle = colours.soft;
  c.textAlign = "right";
  for (const at of rounds(axes.bottom, axes.top, 8)) {
    drawLine(c, colours.grid, 1, [[left, y(at)], [width - right, y(at)]]);
    c.fillText(at, left - 8, y(at) + 4);
  }
  c.textAlign = "center";
  const most = width < 420 ? 5 : 8;
  for (const at of rounds(axes.from, axes.to, most)) c.fillText(at, x(at), height - bottom + 18);
  c.fillText(range.asks ? "asked return" : "episode", (left + width - right) / 2, height - 6);
  c.save();
  c.translate(13, (top + height - bottom) / 2);
  c.rotate(-Math.PI / 2);
  c.fillText(range.asks ? "obtained return" : "return", 0, 0);
  c.restore();
  if (!range.asks) return;
  c.setLineDash([5, 5]);
  drawLine(c, colours.soft, 1, [[x(range.low), y(range.low)], [x(range.high), y(range.high)]]);
  c.setLineDash([]);
}

// An episode: a dot, hollow where the user has steered; an arrow at the rim where it is beyond.
function drawEpisode(c, axes, at, { obtained, mine }, colour) {
  const x = axes.x(at), y = axes.y(obtained);
  const beyond = Math.sign(axes.bottom - obtained) + Math.sign(axes.top - obtained); // 2, 0, -2
  if (beyond !== 0) {
    const way = Math.sign(beyond);
    fillPath(c, colour, [[x - 4, y - way * 7], [x + 4, y - way * 7], [x, y]]);
    return;
  }
  if (!mine) {
    fillCircle(c, colour, [x, y], 3);
    return;
  }
  c.strokeStyle = colour;
  c.lineWidth = 1.5;
  c.beginPath();
  c.arc(x, y, 4, 0, 2 * Math.PI);
  c.stroke();
}

function drawPlot(canvas, { episodes, asked, task, range }) {
  const [c, width, height] = context(canvas);
  const axes = axesOf(width, height, range, episodes.length);
  const { x, y } = axes;
  c.clearRect(0, 0, width, height);
  drawAxes(c, axes, range);
  c.globalAlpha = 0.5;
  episodes.forEach((each, i) => {
    if (i < episodes.length - 2000) return;
    const at = range.asks ? each.asked : i + 1;
    drawEpisode(c, axes, at, each, range.hue(each.asked));
  });
  c.globalAlpha = 1;
  if (range.asks) {
    c.setLineDash([2, 4]);
    drawLine(c, colours.accent, 1, [[x(asked), MARGIN.top], [x(asked), height - MARGIN.bottom]]);
    c.setLineDash([]);
    for (const [at, obtained, count] of alike(episodes.filter(each => !each.mine), range.bin)) {
      if (count < MEAN_OF) continue;
      fillCircle(c, colours.card, [x(at), y(obtained)], 7.5);
      fillCircle(c, range.hue(at), [x(at), y(obtained)], 6);
    }
  }
  if (task.over) return;
  const now = range.asks ? asked : episodes.length + 1;
  fillCircle(c, colours.accent, [x(now), y(task.total)], 5);
  const isRight = x(now) > width / 2;
  c.textAlign = isRight ? "right" : "left";
  c.fillStyle = colours.accent;
  c.fillText("this episode", x(now) + (isRight ? -10 : 10), y(task.total) + 4);
}
