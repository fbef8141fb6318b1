"use strict";

// Numbers, tables and charts of the live pages. All that servers and grids report is text: names of functions and
// programs never become markup.

const EVERY = 1000;
// The token with which this script was loaded.
const QUERY = new URL(document.currentScript.src).search;
const KEPT = 120;
const $ = id => document.getElementById(id);

// Numbers as in the terminal (formats.rs).
function digits(number) {
  if (number >= 99.95) return Math.round(number).toLocaleString("en");
  return number.toFixed(number < 0.0995 ? 4 : number < 0.9995 ? 3 : number < 9.995 ? 2 : 1);
}
function scaled(number, units) {
  let [unit, size] = units[0];
  for (const [other, larger] of units) if (number >= 0.9995 * larger) [unit, size] = [other, larger];
  return `${digits(number / size)} ${unit}`;
}
const count = number => number < 1e7
  ? number.toLocaleString("en") : scaled(number, [["M", 1e6], ["G", 1e9], ["T", 1e12]]);
const rate = number => number < 0.005 ? "0" : number < 999.5 ? digits(number)
  : scaled(number, [["k", 1e3], ["M", 1e6], ["G", 1e9]]);
const bytes = number => number < 999.5
  ? `${number.toFixed(0)} B` : scaled(number, [["kB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]]);
const time = seconds => seconds === 0 ? "0 s" : seconds >= 1000 ? clock(seconds)
  : scaled(seconds, [["ns", 1e-9], ["µs", 1e-6], ["ms", 1e-3], ["s", 1]]);
function clock(seconds) {
  const all = Math.floor(seconds);
  const two = number => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`;
}

function element(kind, text, classes) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

// What grows per second, of the whole or of a part: since the last look, or on average after the first.
function perSecond({now, before}) {
  const seconds = Math.max(now.uptime - (before ? before.uptime : 0), 1e-3);
  return of => Math.max(0, of(now) - (before ? of(before) ?? 0 : 0)) / seconds;
}

function table(id, heads, rows) {
  const head = element("thead");
  const first = head.appendChild(element("tr"));
  for (const text of heads) first.append(element("th", text));
  const body = element("tbody");
  for (const cells of rows) {
    const row = body.appendChild(element("tr"));
    for (const cell of cells) row.append(element("td", cell.text ?? cell, cell.bad ? "bad" : ""));
  }
  $(id).replaceChildren(head, body);
}

const warned = number => ({text: count(number), bad: number > 0});

function chart(id, values, most, shown) {
  const space = "http://www.w3.org/2000/svg";
  const picture = $(id);
  picture.setAttribute("viewBox", `0 0 ${KEPT - 1} 100`);
  picture.setAttribute("preserveAspectRatio", "none");
  const last = shown(values[values.length - 1]);
  picture.setAttribute("aria-label", `now ${last}, peak ${shown(most)}`);
  const base = document.createElementNS(space, "line");
  for (const [name, value] of [["x1", 0], ["x2", KEPT - 1], ["y1", 99], ["y2", 99]]) base.setAttribute(name, value);
  const curve = document.createElementNS(space, "polyline");
  const left = KEPT - values.length;
  const point = (value, at) => `${left + at},${98 - 94 * value / (most || 1)}`;
  curve.setAttribute("points", values.map(point).join(" "));
  picture.replaceChildren(base, curve);
  const figure = picture.parentElement;
  const told = figure.querySelector("output") ?? figure.insertBefore(element("output"), figure.firstChild);
  told.textContent = `${last} (peak ${shown(most)})`;
}

// Cards with a name, a value and a note.
function cards(id, figures) {
  $(id).replaceChildren(...figures.map(([name, value, more]) => {
    const card = element("div");
    const shown = element("dd", value.text ?? value, value.bad ? "bad" : "");
    shown.append(element("small", more));
    card.append(element("dt", name), shown);
    return card;
  }));
}
