// The table of rows, and what changes when one is chosen.
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 25, BARS = 10;
const state = { chosen: 0, page: 0, sort: "", descending: false, found: [] };
const byId = (id) => document.getElementById(id);

function credit(row, feature) { return data.credits[row][feature] * data.unit; }

function text(column, v) { return column.kind === "category" && v !== null ? column.labels[v] : number(v); }

function value(row, feature) {
  const column = data.columns[feature];
  return column.kind === "none" ? null : text(column, column.values[row]);
}

// what a feature was at the start of a pair; null where it was the same, and against a reference
function before(row, feature) {
  const column = data.columns[feature];
  return column.starts && column.starts[row] !== column.values[row] ? text(column, column.starts[row]) : null;
}

function labelled(row, feature) { return [data.short[feature], value(row, feature), before(row, feature)]; }

// the features of a row by size; of a pair only those that changed
function ranked(row) {
  const kept = (j) => data.origin !== "start" || data.credits[row][j] !== 0 || before(row, j) !== null;
  return data.names.map((_, j) => j).filter(kept).sort((a, b) => Math.abs(data.credits[row][b]) - Math.abs(data.credits[row][a]) || a - b);
}

// what the search looks through: the id and every value, made once
const haystack = data.ids.map((id, row) =>
  [id, ...data.names.map((_, j) => value(row, j) || "")].join("\n").toLowerCase());

const KEYS = {
  id: (row) => data.ids[row],
  prediction: (row) => data.prediction[row],
  change: (row) => data.prediction[row] - data.base[row],
};
const order = new Intl.Collator(undefined, { numeric: true });

function search() {
  const wanted = byId("search").value.trim().toLowerCase();
  state.found = data.ids.map((_, row) => row).filter((row) => haystack[row].includes(wanted));
  if (state.sort) {
    const key = KEYS[state.sort], sign = state.descending ? -1 : 1;
    state.found.sort((a, b) => sign * (state.sort === "id" ? order.compare(key(a), key(b)) : key(a) - key(b)) || a - b);
  }
  state.page = 0;
  byId("found").textContent = wanted ? state.found.length.toLocaleString("en") + " found" : "";
  table();
}

function table() {
  const body = clear(document.querySelector("#rows tbody"));
  const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
  for (const row of state.found.slice(state.page * PAGE, (state.page + 1) * PAGE)) {
    const line = make(body, "tr", { tabindex: 0, "data-row": row, "aria-selected": row === state.chosen });
    make(line, "td", {}, data.ids[row]);
    make(line, "td", { class: "right" }, fixed(data.prediction[row], data.places));
    make(line, "td", { class: "right" }, signed(data.prediction[row] - data.base[row], data.places));
    const largest = make(line, "td");
    ranked(row).slice(0, 3).forEach((j, i) => {
      if (i) make(largest, "span", {}, ", ");
      const c = credit(row, j);
      make(largest, "span", { class: c > 0 ? "up" : "down" }, data.short[j] + " " + signed(c, data.places));
    });
    line.addEventListener("click", () => choose(row));
    line.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(row); }
    });
  }
  byId("page").textContent = `page ${state.page + 1} of ${pages}`;
  byId("previous").disabled = state.page === 0;
  byId("next").disabled = state.page >= pages - 1;
}

function choose(row) {
  state.chosen = row;
  for (const line of document.querySelectorAll("#rows tbody tr")) {
    line.setAttribute("aria-selected", Number(line.dataset.row) === row);
  }
  const features = ranked(row), base = data.base[row], prediction = data.prediction[row];
  byId("chosen").textContent = data.ids[row];
  byId("sentence").textContent =
    `The ${data.origin} scores ${fixed(base, data.places)}, this row ${fixed(prediction, data.places)}: ` +
    `a change of ${signed(prediction - base, data.places)} in ${data.score}.`;
  drawWaterfall(byId("waterfall"), bars(row, features), base, prediction, data.places, data.score, data.origin);
  showPath(row);
  showValues(row, features);
  ring(row);
}

function bars(row, features) {
  const cut = features.length > BARS + 1 ? BARS : features.length;
  const out = features.slice(0, cut).map((j) => [labelled(row, j), credit(row, j)]);
  const others = features.slice(cut);
  if (others.length) out.push([[`${others.length} others`, null], others.reduce((sum, j) => sum + credit(row, j), 0)]);
  if (data.left) out.push([[data.leftName, null], data.left[row] * data.unit]);
  return out;
}

function showPath(row) {
  const found = data.paths && data.paths.rows[row];
  byId("path-figure").hidden = !data.paths;
  if (!data.paths) return;
  byId("path-said").textContent = found ? data.paths.said : "(the path of this row was not kept)";
  if (!found) { clear(byId("path")).setAttribute("viewBox", "0 0 720 1"); return; }
  const units = (list) => list.map((v) => v * data.unit);
  const bands = found.bands.filter(([, list]) => list.some((v) => v !== 0)).map(([j, list]) => [labelled(row, j), units(list), false]);
  const score = units(found.score);
  const left = score.map((v, k) => v - bands.reduce((sum, b) => sum + b[1][k], 0));
  if (left.some((v) => Math.abs(v) > 50 * data.unit)) bands.push([["others", null], left, true]);
  const jumps = found.jumps.map(([t, j, size]) => [t, j < 0 ? "another feature" : data.short[j], size * data.unit]);
  drawPath(byId("path"), data.paths.times, { score, start: found.start, bands, jumps }, data.places, data.score, data.origin);
}

function showValues(row, features) {
  const body = clear(document.querySelector("#values tbody"));
  for (const j of features) {
    const line = make(body, "tr");
    make(line, "td", {}, data.names[j]);
    const was = before(row, j);
    make(line, "td", {}, (was === null ? "" : was + " -> ") + (value(row, j) || ""));
    make(line, "td", { class: "right " + (credit(row, j) > 0 ? "up" : "down") }, signed(credit(row, j), data.places));
  }
}

let plots = [];

function dependence() {
  plots = data.dependence.map((j) => {
    const figure = make(byId("plots"), "figure");
    make(figure, "figcaption", {}, data.names[j]);
    const svg = make(figure, "svg", { role: "img", "aria-label": "credit against value" });
    const credits = data.credits.map((row) => row[j] * data.unit);
    return { svg, spots: drawDependence(svg, data.columns[j], credits, data.names[j], choose) };
  });
}

function ring(row) {
  for (const { svg, spots } of plots) {
    const old = svg.querySelector(".ring");
    if (old) old.remove();
    make(svg, "circle", { class: "ring", cx: spots[row][0], cy: spots[row][1], r: 6 });
  }
}

for (const head of document.querySelectorAll("#rows th[data-sort]")) {
  head.firstElementChild.addEventListener("click", () => {
    state.descending = state.sort === head.dataset.sort && !state.descending;
    state.sort = head.dataset.sort;
    for (const other of document.querySelectorAll("#rows th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
    search();
  });
}
byId("search").addEventListener("input", search);
byId("previous").addEventListener("click", () => { state.page -= 1; table(); });
byId("next").addEventListener("click", () => { state.page += 1; table(); });
let shownWidth = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === shownWidth) return;
  shownWidth = window.innerWidth;
  choose(state.chosen);
});
dependence();
search();
choose(0);
