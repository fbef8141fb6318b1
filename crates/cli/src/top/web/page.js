"use strict";

// Looks at the grids once per second, and shows the one that is chosen.

const histories = new Map();
let latest = new Map();

const nameOf = grid => grid.grid === 1 ? `${grid.pid}` : `${grid.pid}.${grid.grid}`;
const ended = calls =>
  calls.returned + calls.raised + calls.cancelled + calls.expired + calls.lost + calls.failed + calls.inside;
const errors = calls => calls.raised + calls.expired + calls.lost + calls.failed;

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
  cards("figures", figures);
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
      state.textContent = "gridrpc top was started again: open the address that it has printed.";
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
