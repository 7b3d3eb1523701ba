"use strict";
const el = id => document.getElementById(id);
function say(words, bad) { el("message").textContent = words; el("message").className = bad ? "bad" : ""; }
const withMinus = text => String(text).replace("-", "\u2212");
const short = value => withMinus(Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3)
  ? value.toExponential(2) : +value.toFixed(4));
const signed = value => (value > 0 ? "+" : "") + short(value);
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
