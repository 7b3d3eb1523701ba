"use strict";
const el = id => document.getElementById(id);
function say(words, bad) { el("message").textContent = words; el("message").className = bad ? "bad" : ""; }
const withMinus = text => String(text).replace("-", "\u2212");
const short = value => withMinus(Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3)
  ? value.toExponential(2) : +value.toFixed(4));
const signed = value => (value > 0 ? "+" : "") + short(value);
function make(tag, kind, ...children) {  // children are nodes or text, which is never parsed as HTML
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  node.append(...children);
  return node;
}
const isolated = (...children) => { const node = make("bdi", "", ...children); node.dir = "auto"; return node; };
function fill(table, columns, rows) {  // a column is a pair of its name and whether it holds numbers; a cell is a td or text
  const heads = columns.map(([name, isNumber]) => {
    const cell = make("th", isNumber ? "number" : "", isolated(name)); cell.scope = "col"; return cell;
  });
  const cell = (value, k) => value instanceof Node ? value : make("td", columns[k][1] ? "number" : "", isolated(String(value)));
  table.replaceChildren(make("thead", "", make("tr", "", ...heads)),
    make("tbody", "", ...rows.map(row => make("tr", "", ...row.map(cell)))));
}
const shownValue = value => value === null ? "missing" : typeof value === "number" ? short(value) : value;

async function call(path, body) {
  const headers = {};
  if (el("token").value) headers.authorization = "Bearer " + el("token").value;
  if (body) headers["content-type"] = "application/json";
  const response = await fetch(path, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body)});
  const answer = await response.json();
  if (response.status === 401) el("guard").hidden = false;
  if (!response.ok) throw Object.assign(new Error(answer.error), {status: response.status});
  return answer;
}
