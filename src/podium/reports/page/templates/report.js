"use strict";
(function () {
const content = JSON.parse(document.getElementById("content").textContent);
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function make(tag, text, kind) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (kind) node.className = kind;
  return node;
}
const short = value => value === null || value === undefined ? "–" : typeof value !== "number" ? String(value)
  : Number.isInteger(value) ? String(value) : String(+value.toPrecision(4));
const signed = value => (value < 0 ? "\u2212" : "+") + short(Math.abs(value));

function tableOf(caption, columns, rows, numeric) {
  const table = make("table"), head = make("thead"), body = make("tbody"), line = make("tr");
  table.append(make("caption", caption));
  columns.forEach((name, k) => { const cell = make("th", name, numeric[k] ? "number" : ""); cell.scope = "col"; line.append(cell); });
  head.append(line);
  for (const row of rows) {
    const one = make("tr");
    row.forEach((text, k) => {
      const cell = make(k ? "td" : "th", text, numeric[k] ? "number" : "");
      if (!k) cell.scope = "row";
      one.append(cell);
    });
    body.append(one);
  }
  table.append(head, body);
  return table;
}

/* Charts take the available width and the colours of the page. */
function themeOf(dark, width, columns) {
  const config = JSON.parse(JSON.stringify(dark ? content.themes.dark : content.themes.light));
  config.background = "transparent";
  config.padding = {left: 2, top: 2, bottom: 2, right: 14};
  config.legend.orient = "top";
  config.legend.columns = columns;
  config.legend.labelLimit = Math.max(90, width * 0.4);
  config.legend.titleLimit = width * 0.9;
  config.axis.labelLimit = Math.max(80, Math.min(240, width * 0.4));
  config.axis.titleLimit = width * 0.9;
  config.aria = false;
  return config;
}
function specOf(node, width) {
  const spec = content.charts[Number(node.dataset.chart)];
  return {...spec, width, autosize: {type: "fit-x", contains: "padding"}};
}
/* The number of legend entries that fit next to each other. */
function columnsOf(spec, width) {
  const names = [...(spec.layer || []), spec].flatMap(one => ((((one.encoding || {}).color || {}).scale || {}).domain) || []);
  const longest = Math.max(3, ...names.map(name => String(name).length));
  return Math.max(1, Math.min(8, Math.floor((width - 70) / (longest * 6.8 + 28))));
}
const drawn = new Map();
async function draw(node) {
  const width = Math.max(200, Math.floor(node.clientWidth)), dark = prefersDark.matches;
  drawn.set(node, width);
  const spec = specOf(node, width);
  const options = {config: themeOf(dark, width, columnsOf(spec, width)), actions: false, renderer: "svg", mode: "vega-lite",
    tooltip: {theme: dark ? "dark" : "light"}};
  await vegaEmbed(node, spec, options);
}
function drawForPrint() {
  if (!prefersDark.matches) return;
  for (const node of drawn.keys()) {
    const width = drawn.get(node);
    const spec = specOf(node, width);
    const compiled = vegaLite.compile(spec, {config: themeOf(false, width, columnsOf(spec, width))}).spec;
    node.replaceChildren();
    new vega.View(vega.parse(compiled), {renderer: "svg", container: node}).run();
  }
}
const charts = [...document.querySelectorAll("[data-chart]")];
async function drawAll(all) {
  for (const node of all) await draw(node);
  document.documentElement.dataset.drawn = "yes";
}
const valuesIn = spec => [...(spec.layer || []), spec].map(layer => (layer.data && layer.data.values) || [])
  .reduce((most, rows) => rows.length > most.length ? rows : most, []);
const MOST_ROWS = 300;
for (const details of document.querySelectorAll("[data-values]")) {
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const rows = valuesIn(content.charts[Number(details.dataset.values)]);
    const columns = Object.keys(rows[0] || {}), numeric = columns.map(name => rows.every(row => typeof row[name] !== "string"));
    const shown = rows.slice(0, MOST_ROWS).map(row => columns.map(name => short(row[name])));
    const caption = rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${rows.length} rows` : `${rows.length} rows`;
    const scroll = make("div", null, "scroll");
    scroll.tabIndex = 0; scroll.setAttribute("role", "region"); scroll.setAttribute("aria-label", "Numbers of the chart");
    scroll.append(tableOf(caption, columns, shown, numeric));
    details.append(scroll);
  });
}

/* Single queries: show one at a time, with the λ of its list by round. */
const SVG = "http://www.w3.org/2000/svg";
function shape(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}
const ROW = 25, REACH = 4, LANES = 8, TOP = 46;

function cut(text, width) {
  const most = Math.max(3, Math.floor(width / 7.6));
  return text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
}
function drawArrows(node, arrows, step) {
  const width = Math.max(280, Math.min(node.clientWidth || 700, 820)), n = step.rows.length;
  const height = TOP + ROW * n + 14, left = Math.round(width * (width < 500 ? 0.44 : 0.4));
  const svg = shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"});
  const panel = (width - left) / arrows.objectives.length, barWidth = Math.min(70, left * 0.3), nameWidth = left - barWidth - 44;
  const head = (x, text, space) => svg.append(shape("text", {x, y: 16, class: "quiet"}, cut(text, space)));
  head(2, "rank", 40); head(34, "document", nameWidth); head(left - barWidth - 6, "label", barWidth);
  arrows.objectives.forEach((name, k) => head(left + k * panel + 8, name, panel - 8));
  step.rows.forEach((row, k) => {
    const y = TOP + ROW * k, label = arrows.labels[row];
    if (k % 2 === 0) svg.append(shape("rect", {x: 0, y: y - ROW / 2, width, height: ROW, class: "row"}));
    svg.append(shape("text", {x: 22, y: y + 4, "text-anchor": "end"}, k + 1));
    svg.append(shape("text", {x: 34, y: y + 4}, cut(arrows.names[row], nameWidth)));
    const share = label === null ? 0 : Math.max(0, Math.min(1, label / arrows.highest));
    svg.append(shape("rect", {x: left - barWidth - 6, y: y - 8, width: share * (barWidth - 14), height: 16, class: "bar"}));
    svg.append(shape("text", {x: left - barWidth - 4, y: y + 4}, label === null ? "none" : short(label)));
  });
  arrows.objectives.forEach((name, k) => {
    const lane = Math.min(22, (panel - 24) / LANES);
    step.lambdas[k].forEach((value, place) => {
      const length = step.longest[k] ? REACH * ROW * value / step.longest[k] : 0;
      if (Math.abs(length) < 3) return;
      const x = left + k * panel + 14 + lane * (place % LANES), y = TOP + ROW * place;
      const end = Math.max(26, Math.min(height - 4, y - length)), tip = length > 0 ? 7 : -7;
      const group = shape("g", {class: length > 0 ? "up" : "down"});
      group.append(shape("title", {}, `rank ${place + 1}, ${arrows.names[row(place)]}: λ ${signed(value)}`));
      group.append(shape("circle", {cx: x, cy: y, r: 2.5, class: "tip"}));
      group.append(shape("path", {d: `M${x} ${y}V${end + tip / 2}`, class: "stem"}));
      group.append(shape("path", {d: `M${x} ${end}l-5 ${tip}h10z`, class: "tip"}));
      svg.append(group);
    });
  });
  function row(place) { return step.rows[place]; }
  node.replaceChildren(svg);
}
function describeStep(arrows, step, last) {
  const round = step.round === null ? "The final model" : step.round === 0 ? "Before the first tree"
    : `After round ${step.round} of ${last}`;
  const pushes = arrows.objectives.map((name, k) => {
    const values = step.lambdas[k];
    const best = values.indexOf(Math.max(...values)), worst = values.indexOf(Math.min(...values));
    const what = place => `${arrows.names[step.rows[place]]} (rank ${place + 1}, label ${short(arrows.labels[step.rows[place]])})`;
    const up = values[best] > 0 ? `${what(best)} up` : "nothing up", down = values[worst] < 0 ? `${what(worst)} down` : "nothing down";
    return `${name} moves ${up} most, and ${down}`;
  });
  const listed = step.n > step.rows.length ? ` (of the ${step.rows.length} documents listed)` : "";
  return `${round}: ${pushes.join("; ")}${listed}.`;
}

function runQueries(block) {
  const key = block.dataset.queries, articles = [...block.querySelectorAll(".query")];
  const choice = block.querySelector("select"), status = block.querySelector("[role=status]");
  const panel = block.querySelector(".arrows");
  let current = 0, place = -1;
  const arrowsNow = () => content.arrows[`${key}-${current}`];
  function showStep() {
    const arrows = arrowsNow();
    if (!panel || !arrows) { if (panel) panel.hidden = true; return; }
    panel.hidden = false;
    const steps = arrows.steps, slider = panel.querySelector("input");
    if (place < 0 || place >= steps.length) place = steps.length - 1;
    const step = steps[place], last = steps[steps.length - 1].round;
    slider.max = steps.length - 1; slider.value = place;
    slider.setAttribute("aria-valuetext", step.round === null ? "the final model" : `round ${step.round}`);
    panel.querySelector(".controls").hidden = steps.length < 2;
    for (const button of panel.querySelectorAll("[data-step]")) {
      const back = ["first", "-1"].includes(button.dataset.step);
      button.disabled = back ? place === 0 : place === steps.length - 1;
    }
    const description = describeStep(arrows, step, last), drawing = panel.querySelector(".drawing");
    panel.querySelector(".description").textContent = description;
    drawing.setAttribute("aria-label", description);
    drawArrows(drawing, arrows, step);
    const rows = step.rows.map((row, k) => [k + 1, arrows.names[row], short(arrows.labels[row]), ...step.lambdas.map(one => signed(one[k]))]);
    const cut = step.n > step.rows.length ? `The first ${step.rows.length} of ${step.n} documents` : `All ${step.n} documents`;
    panel.querySelector(".numbers").replaceChildren(
      tableOf(cut, ["rank", "document", "label", ...arrows.objectives.map(name => `λ of ${name}`)], rows,
        [true, false, true, ...arrows.objectives.map(() => true)]));
  }
  function show(number, isNew) {
    current = (number + articles.length) % articles.length;
    articles.forEach((article, k) => { article.hidden = k !== current; });
    choice.value = current;
    if (isNew) status.textContent = `${articles[current].querySelector("h3").textContent} is shown.`;
    showStep();
  }
  choice.addEventListener("change", () => show(Number(choice.value), true));
  for (const button of block.querySelectorAll("[data-move]"))
    button.addEventListener("click", () => show(current + Number(button.dataset.move), true));
  if (panel) {
    panel.querySelector("input").addEventListener("input", event => { place = Number(event.target.value); showStep(); });
    for (const button of panel.querySelectorAll("[data-step]")) button.addEventListener("click", () => {
      const end = arrowsNow().steps.length - 1, step = button.dataset.step;
      place = step === "first" ? 0 : step === "last" ? end : Math.max(0, Math.min(end, place + Number(step)));
      showStep();
      if (button.disabled) panel.querySelector("input").focus();
    });
  }
  block.querySelector(".controls").hidden = false;
  show(0, false);
  return showStep;
}
const redrawn = [...document.querySelectorAll("[data-queries]")].map(runQueries);

/* The list of sections is closed on a phone, and highlights the current section. */
if (matchMedia("(max-width: 61.9rem)").matches) document.querySelector("nav details").open = false;
const links = new Map([...document.querySelectorAll("nav a")].map(link => [link.hash.slice(1), link]));
const seen = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) {
    for (const link of links.values()) link.removeAttribute("aria-current");
    links.get(entry.target.id).setAttribute("aria-current", "true");
  }
}, {rootMargin: "-10% 0px -75% 0px"});
for (const key of links.keys()) seen.observe(document.getElementById(key));

let waiting = 0;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    drawAll(charts.filter(node => drawn.get(node) !== Math.max(200, Math.floor(node.clientWidth))));
    redrawn.forEach(one => one());
  }, 150);
});
prefersDark.addEventListener("change", () => drawAll(charts));
addEventListener("beforeprint", drawForPrint);
addEventListener("afterprint", () => { if (prefersDark.matches) drawAll(charts); });
drawAll(charts);
})();
