"use strict";

// Reads the state of the server once per second.

const samples = {now: null, before: null, points: []};
const sum = (all, of) => all.reduce((total, one) => total + of(one), 0);
const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
const ended = one => one.returned + one.failed;
const total = (status, of) => sum(Object.values(status.functions), of);

function show(status) {
  if (samples.now && status.uptime < samples.now.uptime) {
    // The server has started again.
    [samples.now, samples.points] = [null, []];
  }
  [samples.before, samples.now] = [samples.now, status];
  const per = perSecond(samples);
  const calls = per(one => total(one, ended));
  const waiting = sum(Object.values(status.users), user => user.waiting);
  const queue = waiting + sum(status.pools, pool => pool.queued);
  const alive = sum(status.modules, module => module.alive);
  samples.points.push({calls, queue, alive});
  if (samples.points.length > KEPT) samples.points.shift();
  const connections = sum(Object.values(status.clients), count => count);
  $("name").textContent = status.name;
  $("about").textContent = `version ${status.version}, process ${status.pid}, up for ${clock(status.uptime)}`
    + (status.draining ? ", takes no new calls" : "");
  document.title = `${rate(calls)} calls/s - ${status.name}`;
  cards("figures", [
    ["Calls", `${rate(calls)}/s`, `${count(total(status, ended))} have ended`],
    ["Calls that run or wait", count(alive), `${count(queue)} wait`],
    ["Workers ready", count(sum(status.pools, pool => pool.ready)), counted(status.pools.length, "pool")],
    ["Connections", count(connections), counted(Object.keys(status.clients).length, "user")],
    ["Arguments", `${bytes(per(one => total(one, each => each.bytes_in)))}/s`, bytes(total(status, one => one.bytes_in))],
    ["Results", `${bytes(per(one => total(one, each => each.bytes_out)))}/s`, bytes(total(status, one => one.bytes_out))],
    ["Errors", warned(total(status, one => one.failed)), `${count(status.refused)} refused connections`],
    ["Audit log", warned(status.audit_dropped), "missing records"],
  ]);
  const most = name => Math.max(...samples.points.map(point => point[name]));
  chart("calls", samples.points.map(point => point.calls), most("calls"), number => `${rate(number)}/s`);
  chart("queue", samples.points.map(point => point.queue), most("queue"), count);
  chart("alive", samples.points.map(point => point.alive), most("alive"), count);

  table("users",
    ["User", "Connections", "Running", "Waiting", "Calls", "Calls/s", "Workers", "Held", "Errors"],
    Object.entries(status.users).map(([name, user]) => [
      name, count(status.clients[name] ?? 0), count(user.running), count(user.waiting), count(ended(user)),
      rate(per(one => one.users[name] && ended(one.users[name]))), per(one => one.users[name]?.seconds).toFixed(2),
      bytes(user.bytes), warned(user.failed),
    ]));
  const functions = Object.entries(status.functions).map(([name, one]) => {
    const workers = per(status => status.functions[name]?.seconds);
    return {workers, cells: [
      name, count(ended(one)), rate(per(status => status.functions[name] && ended(status.functions[name]))),
      ended(one) ? time(one.seconds / ended(one)) : "–", workers.toFixed(2), bytes(one.bytes_in), bytes(one.bytes_out),
      warned(one.failed),
    ]};
  });
  functions.sort((a, b) => b.workers - a.workers);
  table("functions",
    ["Function", "Calls", "Calls/s", "Mean time", "Workers", "Arguments", "Results", "Errors"],
    functions.map(one => one.cells));
  table("pools",
    ["Pool", "User", "Workers ready", "Queued", "Calls"],
    status.pools.map(pool => [
      pool.module ?? "(common)", pool.user ?? "(all)", count(pool.ready), count(pool.queued), count(pool.alive),
    ]));
  table("modules",
    ["Module", "Functions", "Calls", "Source"],
    status.modules.map(module => [module.name, count(module.functions), count(module.alive), module.source]));
}

async function update() {
  const state = $("state");
  try {
    const answer = await fetch(`status${QUERY}`);
    if (!answer.ok) throw new Error((await answer.json()).error);
    show(await answer.json());
    [state.className, state.textContent, $("server").hidden] = ["", "", false];
  } catch (error) {
    state.className = "late";
    state.textContent = `The server does not answer: ${error.message}`;
  }
  setTimeout(update, EVERY);
}

update();
