// Pictures of one row and of one feature, as SVG. Text from the data only ever becomes textContent.
"use strict";
const SVG = "http://www.w3.org/2000/svg";
const SERIES = ["#2b83ba", "#dd6b0d", "#00a878", "#e58ac3", "#dcb91e", "#67c1f2"];

function make(parent, tag, attributes, text) {
  const node = parent.namespaceURI === SVG || tag === "svg"
    ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function clear(node) {
  while (node.firstChild) node.removeChild(node.firstChild);
  return node;
}

function number(v) {
  if (v === null) return "missing";
  if (Number.isInteger(v)) return String(v);
  const size = Math.abs(v);
  return size >= 1e5 && size < 1e15 ? v.toFixed(0) : String(Number(v.toPrecision(5)));
}

function fixed(v, places) {
  const shown = Math.abs(v).toFixed(places);
  return (v < 0 && Number(shown) !== 0 ? "\u2212" : "") + shown;
}

function signed(v, places) {
  const shown = fixed(v, places);
  return v > 0 && Number(shown) !== 0 ? "+" + shown : shown;
}

function shortened(text, width) {
  if (text.length <= width) return text;
  const head = Math.floor((width - 1) * 2 / 3);
  return text.slice(0, head) + "\u2026" + text.slice(text.length - (width - 1 - head));
}

// [name, value, before] as "name = value", or "name before -> value": each keeps its ends, the value at most a little more
// than a third of the width
function fitted([name, value, before], width) {
  if (value === null) return shortened(name, width);
  if (before) {
    const each = Math.max(4, Math.floor(width * 0.27));
    const both = " " + shortened(before, each) + " -> " + shortened(value, each);
    return shortened(name, Math.max(6, width - both.length)) + both;
  }
  const shown = shortened(value, Math.max(8, Math.floor(width * 0.38), width - name.length - 3));
  return shortened(name, Math.max(6, width - shown.length - 3)) + " = " + shown;
}

// a text of a name and its values, as long as fits into `room` pixels, as the browser measures them
function fit(svg, attributes, label, room, credit) {
  const node = make(svg, "text", attributes, "");
  for (let width = Math.ceil(room / 4); width >= 8; width--) {
    node.textContent = (credit || "") + fitted(label, width);
    if (node.getComputedTextLength() <= room) break;
  }
  return node;
}

function ticks(low, high, most) {
  const span = high - low || 1;
  const raw = span / most, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  const out = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

function scale(low, high, from, to) {
  const span = high - low || 1;
  return (v) => from + (v - low) / span * (to - from);
}

const NARROW = 500;  // pixels: the width of a telephone

// pictures are drawn as wide as they are shown, so that letters stay as large as those around them
function widthOf(svg) {
  return Math.max(320, Math.min(720, Math.round(svg.parentNode.clientWidth) || 720));
}

function horizontalAxis(svg, x, low, high, y, label, width) {
  make(svg, "line", { class: "axis", x1: x(low), x2: x(high), y1: y, y2: y });
  for (const t of ticks(low, high, 5)) {
    make(svg, "line", { class: "axis", x1: x(t), x2: x(t), y1: y, y2: y + 4 });
    const text = make(svg, "text", { class: "small quiet", x: x(t), y: y + 16, "text-anchor": "middle" }, number(t));
    const half = text.getComputedTextLength() / 2;  // the first and the last number stay inside of the picture
    text.setAttribute("x", Math.min(Math.max(x(t), half), svg.viewBox.baseVal.width - half));
  }
  make(svg, "text", { class: "small quiet", x: (x(low) + x(high)) / 2, y: y + 33, "text-anchor": "middle" },
    shortened(label, Math.floor(width / 7)));
}

function verticalAxis(svg, y, low, high, x) {
  make(svg, "line", { class: "axis", x1: x, x2: x, y1: y(low), y2: y(high) });
  for (const t of ticks(low, high, 4)) {
    make(svg, "text", { class: "small quiet", x: x - 6, y: y(t) + 4, "text-anchor": "end" }, number(t));
  }
}

// bars: [[name, value], credit], from base to prediction
function drawWaterfall(svg, bars, base, prediction, places, score, origin) {
  clear(svg);
  const width = widthOf(svg), narrow = width < NARROW, right = width - 12;
  // names stand beside the bars, or above them where there is no room beside them
  const left = narrow ? 0 : Math.round(width * 0.38), lift = narrow ? 16 : 0, anchor = narrow ? "start" : "end";
  const row = 24 + lift, bottom = (bars.length + 2) * row + 8;
  svg.setAttribute("viewBox", `0 0 ${width} ${bottom + 42}`);
  let at = base, low = Math.min(base, prediction), high = Math.max(base, prediction);
  const steps = bars.map(([label, credit]) => {
    const step = { label, credit, from: at, to: at + credit };
    at = step.to;
    low = Math.min(low, at); high = Math.max(high, at);
    return step;
  });
  const room = (narrow ? 0.24 : 0.17) * (high - low || 1);
  const x = scale(low - room, high + room, left + 8, right);
  const end = (y, value, label) => {
    make(svg, "text", { x: left, y: y + 4 - lift, "text-anchor": anchor, class: "strong" }, label);
    make(svg, "circle", { cx: x(value), cy: y, r: 4.5, style: "fill:var(--ink)" });
    make(svg, "text", { x: x(value) + 9, y: y + 4, class: "strong" }, fixed(value, places));
  };
  // where names stand between the bars, a joint ends above them: it would run through their letters
  const joint = (value, y) =>
    make(svg, "line", { class: "joint", x1: x(value), x2: x(value), y1: y - row, y2: narrow ? y - row + 12 : y });
  steps.forEach((s, i) => {
    const y = (i + 1.5) * row + 4, up = s.credit > 0;
    joint(s.from, y);
    make(svg, "rect", { x: Math.min(x(s.from), x(s.to)), y: y - 8, height: 16,
      width: Math.max(1, Math.abs(x(s.to) - x(s.from))), style: `fill:var(${up ? "--up" : "--down"})` });
    fit(svg, { x: left, y: y + 4 - lift, "text-anchor": anchor }, s.label, narrow ? width - 4 : left - 2);
    make(svg, "text", { x: x(s.to) + (up ? 5 : -5), y: y + 4, class: "small", "text-anchor": up ? "start" : "end" },
      signed(s.credit, places));
  });
  joint(at, (bars.length + 1.5) * row + 4);
  end(row / 2 + 4, base, origin);
  end((bars.length + 1.5) * row + 4, prediction, "this row");
  horizontalAxis(svg, x, low - room, high + room, bottom, score, right - left);
}

// path: {score, start, bands: [[[name, value], credits, isOther]], jumps: [[time, label, size]]}, all in score units
function drawPath(svg, times, path, places, score, origin) {
  clear(svg);
  const width = widthOf(svg), narrow = width < NARROW, left = narrow ? 48 : 64;
  const right = narrow ? width - 62 : Math.round(width * 0.68);
  svg.setAttribute("viewBox", `0 0 ${width} ${narrow ? 470 + 18 * path.bands.length : 470}`);
  const x = scale(0, 1, left, right);
  const total = path.score.map((v) => v + path.start);
  drawScore(svg, x, times, total, path, places, scale(Math.min(...total), Math.max(...total), 180, 104));
  const parts = stack(path.bands.map((b) => b[1]));
  const low = Math.min(0, ...parts.flatMap(([, below]) => below[0]));
  const high = Math.max(0, ...parts.flatMap(([above]) => above[1]));
  const y = scale(low, high, 430, 225), last = times.length - 1;
  const ends = [];
  path.bands.forEach(([label, credit, other], i) => {
    const color = other ? "var(--other)" : SERIES[i % SERIES.length];
    for (const [lower, upper] of parts[i]) {
      const there = times.map((t, k) => `${x(t).toFixed(1)},${y(upper[k]).toFixed(1)}`);
      const back = times.map((t, k) => `${x(t).toFixed(1)},${y(lower[k]).toFixed(1)}`).reverse();
      make(svg, "polygon", { points: [...there, ...back].join(" "), style: `fill:${color};fill-opacity:.8` });
    }
    const [lower, upper] = parts[i][credit[last] >= 0 ? 0 : 1];
    ends.push({ label, color, credit: credit[last], at: y((lower[last] + upper[last]) / 2) });
  });
  line(svg, times.map((t, k) => [x(t), y(path.score[k])]), "ink");
  make(svg, "line", { class: "axis", x1: left, x2: right, y1: y(0), y2: y(0) });
  verticalAxis(svg, y, low, high, left);
  const way = `from the ${origin} (0) to this row (1)`;
  horizontalAxis(svg, x, 0, 1, 430, narrow ? way : `credit gathered ${way}`, right - left + 100);
  if (narrow) listBands(svg, ends, width, places);
  else nameBands(svg, ends, right, width, places);
  make(svg, "text", { class: "small quiet", x: 0, y: 12 }, shortened(score, 50));
}

// the bands' names below the picture, one a line, where there is no room at its right
function listBands(svg, ends, width, places) {
  ends.forEach((e, i) => {
    const y = 484 + 18 * i;
    make(svg, "rect", { x: 0, y: y - 9, width: 10, height: 10, style: `fill:${e.color}` });
    fit(svg, { class: "small", x: 16, y }, e.label, width - 20, signed(e.credit, places) + "  ");
  });
}

function nameBands(svg, ends, right, width, places) {
  ends.sort((a, b) => a.at - b.at);
  const spots = apart(ends.map((e) => e.at), 16);
  ends.forEach((e, i) => {
    make(svg, "line", { x1: right + 2, x2: right + 14, y1: e.at, y2: spots[i], style: `stroke:${e.color};stroke-width:2` });
    fit(svg, { class: "small", x: right + 18, y: spots[i] + 4 }, e.label, width - right - 20, signed(e.credit, places) + "  ");
  });
}

function drawScore(svg, x, times, total, path, places, y) {
  line(svg, times.map((t, k) => [x(t), y(total[k])]), "ink");
  make(svg, "line", { class: "axis", x1: x(0), x2: x(1), y1: y(total[0]), y2: y(total[0]), "stroke-dasharray": "3 3" });
  const last = times.length - 1;
  make(svg, "text", { class: "strong", x: x(0) - 6, y: y(total[0]) + 4, "text-anchor": "end" }, fixed(total[0], places));
  make(svg, "text", { class: "strong", x: x(1) + 8, y: y(total[last]) + 4 }, fixed(total[last], places));
  const lanes = [];
  for (const [time, label, size] of path.jumps.slice().sort((a, b) => a[0] - b[0])) {
    const k = Math.max(1, times.findIndex((t) => t >= time));
    const share = times[k] > times[k - 1] ? (time - times[k - 1]) / (times[k] - times[k - 1]) : 1;
    const height = y(total[k - 1] + share * (total[k] - total[k - 1]));
    const name = shortened(label, 22), half = name.length * 3.1;
    const middle = Math.max(half, Math.min(x(1) + 40 - half, x(time)));
    const free = lanes.findIndex((end) => end < middle - half - 8);  // names side by side, or one above the other
    const lane = free < 0 ? lanes.length : free;
    lanes[lane] = middle + half;
    const top = 86 - 13 * lane, color = `var(${size > 0 ? "--up" : "--down"})`;
    make(svg, "line", { x1: x(time), x2: x(time), y1: top + 3, y2: height, style: `stroke:${color};stroke-opacity:.5` });
    make(svg, "circle", { cx: x(time), cy: height, r: 4, style: `fill:${color}` });
    make(svg, "text", { class: "small", x: middle, y: top, "text-anchor": "middle", style: `fill:${color}` }, name);
  }
}

function line(svg, points, cls) {
  make(svg, "polyline", { class: cls, "stroke-width": 1.6, points: points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" ") });
}

// positive credits stacked above zero, negative ones below: of each band the edges [lower, upper] of both parts
function stack(bands) {
  const n = bands.length ? bands[0].length : 0;
  const up = new Array(n).fill(0), down = new Array(n).fill(0);
  return bands.map((band) => {
    const above = [up.slice(), null], below = [null, down.slice()];
    band.forEach((v, k) => { up[k] += Math.max(v, 0); down[k] += Math.min(v, 0); });
    above[1] = up.slice();
    below[0] = down.slice();
    return [above, below];
  });
}

// sorted places moved about as little as needed to stand `step` apart
function apart(places, step) {
  const out = places.slice();
  for (let round = 0; round < 100; round++) {
    for (let i = 1; i < out.length; i++) {
      const short = step - (out[i] - out[i - 1]);
      if (short > 1e-9) { out[i - 1] -= short / 2; out[i] += short / 2; }
    }
  }
  return out;
}

// credits against values; returns where each row's point stands
function drawDependence(svg, column, credits, label, choose) {
  clear(svg);
  const bottom = 220;
  // names of categories need room below
  svg.setAttribute("viewBox", `0 0 420 ${column.kind === "category" ? 300 : bottom + 40}`);
  const known = column.values.filter((v) => v !== null);
  const labels = column.kind === "category" ? column.labels : null;
  const low = labels ? -0.5 : known.reduce((a, b) => Math.min(a, b), Infinity);
  const high = labels ? labels.length - 0.5 : known.reduce((a, b) => Math.max(a, b), -Infinity);
  const missing = known.length < column.values.length;
  const edge = missing ? 360 : 408;
  const x = known.length ? scale(low, high, 62, edge) : scale(0, 1, 62, edge);
  const least = credits.reduce((a, b) => Math.min(a, b), 0), most = credits.reduce((a, b) => Math.max(a, b), 0);
  const y = scale(least, most, bottom - 10, 16);
  verticalAxis(svg, y, least, most, 54);
  make(svg, "line", { class: "axis", x1: 54, x2: 412, y1: y(0), y2: y(0) });
  if (labels) nameCategories(svg, x, labels, bottom);
  else if (known.length) horizontalAxis(svg, x, low, high, bottom, label, 340);
  if (missing) make(svg, "text", { class: "small quiet", x: 388, y: bottom + 16, "text-anchor": "middle" }, "missing");
  const width = labels ? Math.min(14, 120 / labels.length) : 0;
  return column.values.map((v, i) => {
    const shake = ((i * 7919) % 101) / 50 - 1;
    const place = [v === null ? 388 + 8 * shake : x(v) + width * shake, y(credits[i])];
    const point = make(svg, "circle", { class: "point", cx: place[0].toFixed(1), cy: place[1].toFixed(1), r: 2.6 });
    point.addEventListener("click", () => choose(i));
    return place;
  });
}

function nameCategories(svg, x, labels, bottom) {
  const slant = labels.length > 3 || labels.some((l) => l.length > 14);
  const every = Math.ceil(labels.length / 14);
  labels.forEach((text, code) => {
    if (code % every) return;
    const spot = slant
      ? { x: x(code), y: bottom + 12, "text-anchor": "end", transform: `rotate(-35 ${x(code)} ${bottom + 12})` }
      : { x: x(code), y: bottom + 16, "text-anchor": "middle" };
    make(svg, "text", { class: "small quiet", ...spot }, shortened(text, 16));
  });
}
