"use strict";

// Looks at the grids once per second, and shows the one that is chosen. All that grids tell is text: names of
// functions and programs never become markup.

const EVERY = 1000;
// The token with which this script was loaded.
const QUERY = new URL(document.currentScript.src).search;
const KEPT = 120;
const $ = id => document.getElementById(id);
const histories = new Map();
let latest = new Map();

const nameOf = grid => grid.grid === 1 ? `${grid.pid}` : `${grid.pid}.${grid.grid}`;
const ended = calls =>
  calls.returned + calls.raised + calls.cancelled + calls.expired + calls.lost + calls.failed + calls.inside;
const errors = calls => calls.raised + calls.expired + calls.lost + calls.failed;

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

function noted(grid) {
  const key = `${grid.pid}.${grid.grid}`;
  let history = histories.get(key);
  // A process may have the number of an earlier one.
  if (!history || grid.uptime < history.now.uptime) history = {now: null, before: null, points: []};
  histories.set(key, history);
  [history.before, history.now] = [history.now, grid];
  const per = perSecond(history);
  history.points.push({calls: per(grid => ended(grid.calls)), queue: grid.queued, busy: grid.busy});
  if (history.points.length > KEPT) history.points.shift();
  return history;
}

// What grows per second, of the whole grid or of a part: since the last look, or on average after the first.
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

function show(history) {
  const {now, points} = history;
  const per = perSecond(history);
  $("about").textContent =
    `${now.program}: process ${nameOf(now)} on ${now.host}, open for ${clock(now.uptime)}`;
  document.title = `${rate(per(grid => ended(grid.calls)))} calls/s - gridrpc top`;
  const figures = [
    ["Workers busy", count(now.busy), `${now.ready} of ${now.workers} ready`],
    ["Calls", `${rate(per(grid => ended(grid.calls)))}/s`, `${count(ended(now.calls))} have ended`],
    ["Calls that wait", count(now.queued), `${bytes(now.queued_bytes)}; ${count(now.running)} run`],
    ["Arguments", `${bytes(per(grid => grid.calls.argument_bytes))}/s`, bytes(now.calls.argument_bytes)],
    ["Results", `${bytes(per(grid => grid.calls.result_bytes))}/s`, bytes(now.calls.result_bytes)],
    ["Errors", warned(errors(now.calls)), `${count(now.calls.cancelled)} cancelled`],
    ["Lost workers", warned(now.losses), `${count(now.calls.lost)} calls lost with them`],
  ];
  $("figures").replaceChildren(...figures.map(([name, value, more]) => {
    const card = element("div");
    const told = element("dd", value.text ?? value, value.bad ? "bad" : "");
    told.append(element("small", more));
    card.append(element("dt", name), told);
    return card;
  }));
  const most = name => Math.max(...points.map(point => point[name]));
  chart("calls", points.map(point => point.calls), most("calls"), number => `${rate(number)}/s`);
  chart("queue", points.map(point => point.queue), most("queue"), count);
  chart("busy", points.map(point => point.busy), Math.max(now.workers, most("busy")), count);

  const functionOf = name => grid => grid.functions.find(one => one.name === name);
  const functions = now.functions.map(one => {
    const get = functionOf(one.name);
    const answered = one.returned + one.raised;
    const workers = per(grid => get(grid)?.seconds);
    return {workers, cells: [
      one.name, count(ended(one)), rate(per(grid => get(grid) && ended(get(grid)))),
      answered ? time(one.seconds / answered) : "–", workers.toFixed(2),
      `${bytes(per(grid => get(grid)?.argument_bytes))}/s`, `${bytes(per(grid => get(grid)?.result_bytes))}/s`,
      warned(errors(one)),
    ]};
  });
  functions.sort((a, b) => b.workers - a.workers);
  table("functions",
    ["Function", "Calls", "Calls/s", "Mean time", "Workers", "Arguments", "Results", "Errors"],
    functions.map(one => one.cells));
  table("hosts",
    ["Host", "State", "Workers", "Busy", "Calls", "Calls/s", "Lost"],
    now.hosts.map((one, at) => [
      one.server === "localhost" || one.server === one.host ? one.host : `${one.server}/${one.host}`,
      one.detail ? `${one.state}: ${one.detail}` : one.state,
      one.workers === one.ready ? count(one.workers) : `${one.ready} of ${one.workers || "?"}`,
      count(one.busy), count(one.calls), rate(per(grid => grid.hosts[at]?.calls)), warned(one.losses),
    ]));
}

function choose(grids) {
  const select = $("grids");
  const had = select.value;
  const names = grids.map(nameOf);
  if ([...select.options].map(option => option.value).join() !== names.join()) {
    select.replaceChildren(...grids.map(grid => {
      const option = element("option", `${nameOf(grid)}: ${grid.program}`);
      option.value = nameOf(grid);
      return option;
    }));
    if (names.includes(had)) select.value = had;
  }
  $("choice").hidden = names.length < 2;
  return select.value;
}

async function look() {
  const state = $("state");
  try {
    const answer = await fetch(`stats${QUERY}`);
    if (answer.status === 403) {
      state.className = "late";
      state.textContent = "gridrpc top was started anew: open the address that it has printed.";
      return;
    }
    const {grids} = await answer.json();
    latest = new Map(grids.map(grid => [nameOf(grid), noted(grid)]));
    state.className = "";
    state.textContent = grids.length ? "" : "No grid runs. One that is opened appears here by itself.";
    const chosen = choose(grids);
    $("grid").hidden = !grids.length;
    if (grids.length) show(latest.get(chosen));
    else document.title = "gridrpc top";
  } catch (error) {
    state.className = "late";
    state.textContent = `gridrpc top does not answer: has it been ended? (${error.message})`;
  }
  setTimeout(look, EVERY);
}

$("grids").addEventListener("change", () => show(latest.get($("grids").value)));
look();
