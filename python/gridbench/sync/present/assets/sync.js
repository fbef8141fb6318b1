// Draws the pictures of synchronised rounds; numbers come with their units.
"use strict";
(() => {
  const { DASHES, LEGEND, SYMBOLS, axis, data, drawAll, finite, layout, plain, show, shortened, theme } = plots;
  const COLOURS = data.colours.series;
  const NAMED_HOSTS = 12;
  const WORDS = { ok: "ok", failed: "failed", timeout: "timed out", lost: "lost" };

  const colour = (index) => COLOURS[index % COLOURS.length];
  const chosen = document.getElementById("chosen");
  const round = () => data.rounds[Number(chosen.value)];

  // Room above a picture for its legend.
  function legendFor(names, figure, most = 40) {
    const width = 50 + 7 * Math.min(most, Math.max(...names.map((name) => name.length), 4));
    const perRow = Math.max(1, Math.floor((figure.clientWidth - 90) / (width + 20)));
    return { height: 30 + 20 * Math.ceil(names.length / perRow), legend: { ...LEGEND, entrywidth: width } };
  }

  const curve = (figure) => curves.draw(data.curve[figure.dataset.name], figure, (line) => ({
    colour: colour(line.index), width: 2, size: 7, symbol: SYMBOLS[line.index % SYMBOLS.length],
  }));

  // Lines that are steps: tasks running, or the share of tasks that had begun.
  function steps(made, figure, xTitle, yTitle, more, xMore = {}) {
    if (!made) return null;
    const { height, legend } = legendFor(made.lines.map((line) => line.name), figure);
    return {
      traces: made.lines.map((line, index) => ({
        name: plain(shortened(line.name, 40)), x: line.x, y: line.y, showlegend: made.lines.length > 1,
        mode: line.x.length > 1 ? "lines" : "markers",
        line: { shape: "hv", color: colour(index), width: 1.8 }, marker: { color: colour(index), size: 8 },
        hovertemplate: `${plain(line.name)}<br>%{y} at %{x} ${made.unit}<extra></extra>`,
      })),
      layout: layout(340 + height, axis(`${xTitle} [${made.unit}]`, { zeroline: true, ...xMore }),
        axis(yTitle, { rangemode: "tozero", ...more }), { margin: { l: 64, r: 24, t: height, b: 52 }, legend }),
      columns: ["line", `x [${made.unit}]`, yTitle],
      rows: made.lines.flatMap((line) => line.x.map((x, i) => [line.name, x, line.y[i]])),
    };
  }

  const hovers = (tasks, picked) => picked.map((i) => tasks.hover[i].map((line) => plain(shortened(line, 100))).join("<br>"));

  function gantt(figure) {
    const { tasks, unit } = round();
    const all = tasks.worker.map((_, i) => i);
    const drawn = all.filter((i) => finite(tasks.began[i]) && finite(tasks.ended[i]));
    document.getElementById("drawn").textContent = tasks.worker.length < tasks.all
      ? `Drawn are ${tasks.worker.length} of ${tasks.all.toLocaleString("en")} workers, those that failed or were late among them.` : "";
    const { ink } = theme();
    const many = tasks.hosts.length > NAMED_HOSTS;
    const bars = tasks.hosts.map((host, place) => {
      const own = drawn.filter((i) => tasks.host[i] === place);
      return {
        type: "bar", orientation: "h", name: plain(shortened(host, 30)), showlegend: !many && tasks.hosts.length > 1,
        y: own.map((i) => i), base: own.map((i) => tasks.began[i]), x: own.map((i) => tasks.ended[i] - tasks.began[i]),
        // Else bars are as wide as the workers of one host are apart.
        width: tasks.worker.length > 120 ? 1 : 0.75,
        marker: { color: colour(place) }, text: hovers(tasks, own), textposition: "none",
        hovertemplate: "%{text}<extra></extra>",
      };
    });
    const marked = (name, symbol, picked) => ({
      type: "scatter", mode: "markers", name, y: picked, cliponaxis: false,
      x: picked.map((i) => tasks.ended[i] ?? tasks.began[i] ?? 0), text: hovers(tasks, picked),
      marker: { symbol, size: 10, color: ink }, hovertemplate: "%{text}<extra></extra>",
    });
    const bad = (status) => all.filter((i) => tasks.status[i] === status);
    const marks = [
      marked("straggler", "triangle-left", all.filter((i) => tasks.late[i])),
      marked("failed", "x", bad("failed")), marked("timed out", "hourglass", bad("timeout")),
      marked("lost", "cross", bad("lost")),
    ].filter((trace) => trace.y.length);
    const traces = [...bars.filter((trace) => trace.y.length), ...marks];
    if (!traces.length) return null;
    const { height, legend } = legendFor(traces.filter((t) => t.showlegend !== false).map((t) => t.name), figure, 30);
    const rows = tasks.worker.length;
    const every = Math.ceil(rows / 40);
    const ticks = all.filter((i) => i % every === 0);
    return {
      traces,
      layout: layout(Math.round(Math.min(900, Math.max(200, 90 + height + rows * 14))),
        axis(`time since the agreed instant [${unit}]`, { zeroline: true }),
        axis("worker", {
          range: [rows - 0.4, -0.6], showgrid: false, zeroline: false,
          tickvals: ticks, ticktext: ticks.map((i) => String(tasks.worker[i])),
        }),
        { barmode: "overlay", showlegend: true, margin: { l: 64, r: 24, t: height, b: 52 }, legend }),
      columns: ["worker", "host", `began [${unit}]`, `ended [${unit}]`, "status", "straggler"],
      rows: all.map((i) => [tasks.worker[i], tasks.hosts[tasks.host[i]], tasks.began[i], tasks.ended[i], WORDS[tasks.status[i]], tasks.late[i]]),
    };
  }

  function counters(figure) {
    const made = round().counters[figure.dataset.name];
    if (!made || !made.lines.length) return null;
    const { soft } = theme();
    // Of several hosts, the colour says which one it is, as in the picture above, and the dash what.
    const several = new Set(made.lines.map((line) => line.host)).size > 1;
    const seen = new Set();
    const traces = made.lines.map((line) => {
      const first = several ? !seen.has(line.host) : Boolean(line.what);
      seen.add(line.host);
      return {
        name: plain(shortened(several ? line.host : line.what, 30)), x: line.x, y: line.y, showlegend: first,
        mode: line.x.length > 1 ? "lines" : "markers",
        // A look counts what was since the one before.
        line: {
          shape: "vh", width: 1.8, color: colour(several ? line.place : line.way),
          dash: DASHES[(several ? line.way : 0) % DASHES.length],
        },
        marker: { color: colour(several ? line.place : line.way), size: 8 },
        hovertemplate: `${plain([line.what, line.host].filter(Boolean).join(", "))}<br>%{y} at %{x} s<extra></extra>`,
      };
    });
    const ways = new Map(made.lines.map((line) => [line.way, line.what]));
    if (several) {
      for (const [way, what] of [...ways].filter(([, told]) => told)) {
        traces.push({
          name: plain(shortened(what, 30)), x: [null], y: [null], mode: "lines", hoverinfo: "skip",
          line: { color: soft, width: 1.8, dash: DASHES[way % DASHES.length] },
        });
      }
    }
    const named = traces.filter((trace) => trace.showlegend !== false).map((trace) => trace.name);
    const { height, legend } = legendFor(named, figure, 30);
    return {
      traces,
      layout: layout(220 + height, axis("time since the agreed instant [s]", {}),
        axis(made.y, { rangemode: "tozero" }),
        { showlegend: named.length > 1, margin: { l: 64, r: 24, t: height, b: 52 }, legend }),
      columns: ["host", "what", "time [s]", made.y],
      rows: made.lines.flatMap((line) => line.x.map((x, i) => [line.host, line.what, x, line.y[i]])),
    };
  }

  function hosts() {
    const place = document.getElementById("hosts");
    const rows = round().hosts;
    if (!rows.length) {
      place.textContent = "Nothing is known of the hosts of this round.";
      return;
    }
    const table = document.createElement("table");
    const add = (row, kind, text) => row.append(Object.assign(document.createElement(kind), { textContent: text }));
    const head = table.createTHead().insertRow();
    data.hosts_head.forEach((name) => add(head, "th", name));
    const body = table.createTBody();
    for (const cells of rows) {
      const row = body.insertRow();
      cells.forEach((text, i) => add(row, i ? "td" : "th", text));
    }
    place.replaceChildren(table);
  }

  function describe() {
    document.getElementById("about").textContent = round().about;
    hosts();
  }

  const makers = {
    curve,
    running: (figure) => steps(data.running, figure, "time since the agreed instant", "tasks running"),
    share: (figure) => steps(data.share, figure, "share of the round", "share of the tasks running [%]", { range: [0, 102] }, { range: [-1, 101] }),
    delays: (figure) => steps(data.delays, figure, "time after the agreed instant", "share of the tasks [%]", { range: [0, 102] }),
    gantt,
    counters,
  };
  const NOTHING = {
    running: "Nothing to draw: no task began and ended.",
    share: "Nothing to draw: no task began and ended.",
    delays: "Nothing to draw: no task began.",
    gantt: "Nothing to draw: the round has no tasks.",
    counters: "Nothing to draw: there are no looks at the hosts during this round, or there was nothing to see.",
  };
  const draw = (figure) => {
    const { chart: kind, name } = figure.dataset;
    return show(figure, () => makers[kind](figure), ["gridbench-sync", kind, ...(name ? [name] : [])].join("-"),
      NOTHING[kind] ?? "Nothing to draw: there are no values.");
  };
  if (chosen) {
    describe();
    chosen.addEventListener("change", () => {
      describe();
      document.querySelectorAll('[data-chart="gantt"], [data-chart="counters"]').forEach(draw);
    });
  }
  drawAll(draw);
})();
