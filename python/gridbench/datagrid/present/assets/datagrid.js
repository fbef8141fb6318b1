// Draws the pictures of data grids; numbers come with their units.
"use strict";
(() => {
  const { DASHES, LEGEND, SYMBOLS, axis, data, drawAll, engineColour, layout, plain, show, shortened, theme } = plots;
  const COLOURS = data.colours.series;
  const chosen = document.getElementById("chosen");
  const picked = () => data.cases[Number(chosen.value)];

  // A published line is of no engine that was measured.
  const colourOf = (line) => {
    if (line.engine) return engineColour(line.engine);
    return line.dash === "dash" ? theme().soft : COLOURS[line.index % COLOURS.length];
  };
  const styled = (line) => ({ colour: colourOf(line), width: line.dash === "dot" ? 1.3 : 2, size: 7, symbol: SYMBOLS[line.index % SYMBOLS.length] });

  // Room above a picture for its legend.
  function legendFor(names, figure, most = 40) {
    const width = 50 + 7 * Math.min(most, Math.max(...names.map((name) => name.length), 4));
    const perRow = Math.max(1, Math.floor((figure.clientWidth - 90) / (width + 20)));
    return { height: 30 + 20 * Math.ceil(names.length / perRow), legend: { ...LEGEND, entrywidth: width } };
  }

  const marks = (kills, { soft }) => kills.map(({ at }) => ({
    type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color: soft, width: 1.5, dash: "dash" },
  }));
  const notes = (kills, { ink }) => kills.map(({ at, text }) => ({
    x: at, y: 1, yref: "paper", yanchor: "top", xanchor: "left", text: plain(text), showarrow: false, font: { size: 12, color: ink },
  }));

  function gantt(figure) {
    const { tasks, unit, engine, kills } = picked();
    const clients = [...new Set(tasks.client)];
    document.getElementById("drawn").textContent = tasks.id.length < tasks.all
      ? `Drawn are ${tasks.id.length.toLocaleString("en")} of ${tasks.all.toLocaleString("en")} tasks: the first ones of ${clients.length} of ${tasks.clients} clients.` : "";
    if (!tasks.id.length) return null;
    const { paper, ink } = theme();
    const place = new Map(clients.map((client, row) => [client, row]));
    const all = tasks.id.map((_, i) => i);
    const told = (i) => [`task ${tasks.id[i]}, client ${tasks.client[i]}`,
      `${(tasks.ended[i] - tasks.began[i]).toPrecision(4)} ${unit}, from ${tasks.began[i]} to ${tasks.ended[i]} ${unit}`,
      ...(tasks.why[i] ? [tasks.why[i]] : [])].map(plain).join("<br>");
    const bad = all.filter((i) => tasks.why[i]);
    const bars = {
      type: "bar", orientation: "h", name: "task", showlegend: false,
      y: all.map((i) => place.get(tasks.client[i])), base: tasks.began, x: all.map((i) => tasks.ended[i] - tasks.began[i]),
      width: 0.8, text: all.map(told), textposition: "none", hovertemplate: "%{text}<extra></extra>",
      marker: { color: engineColour(engine), line: { color: paper, width: 1 } },
    };
    const failed = {
      type: "scatter", mode: "markers", name: "an operation failed", showlegend: true, cliponaxis: false,
      x: bad.map((i) => tasks.ended[i]), y: bad.map((i) => place.get(tasks.client[i])), text: bad.map(told),
      marker: { symbol: "x", size: 8, color: ink }, hovertemplate: "%{text}<extra></extra>",
    };
    const every = Math.ceil(clients.length / 30);
    const ticks = clients.map((_, row) => row).filter((row) => row % every === 0);
    const labelled = kills.map(({ member, at }) => ({ at, text: `member ${member} killed` }));
    return {
      traces: bad.length ? [bars, failed] : [bars],
      layout: layout(Math.round(Math.min(900, Math.max(190, 110 + clients.length * 18))),
        axis(`time since all clients began [${unit}]`, { rangemode: "tozero" }),
        axis("client", {
          range: [clients.length - 0.4, -0.6], showgrid: false, zeroline: false,
          tickvals: ticks, ticktext: ticks.map((row) => String(clients[row])),
        }),
        { barmode: "overlay", margin: { l: 64, r: 24, t: 40, b: 52 }, shapes: marks(labelled, theme()), annotations: notes(labelled, theme()) }),
      columns: ["task", "client", `began [${unit}]`, `ended [${unit}]`, "what went wrong"],
      rows: all.map((i) => [tasks.id[i], tasks.client[i], tasks.began[i], tasks.ended[i], tasks.why[i]]),
    };
  }

  function throughput(figure) {
    const { windows, unit, engine, kills } = picked();
    if (!windows.x.length) return null;
    const { ink } = theme();
    const step = windows.x.length > 1 ? windows.x[1] - windows.x[0] : 1;
    // The last window has an end, too.
    const x = [...windows.x, windows.x[windows.x.length - 1] + step];
    const line = (name, y, colour, dash) => ({
      name, x, y: [...y, y[y.length - 1]], mode: "lines", line: { shape: "hv", color: colour, width: 1.8, dash },
      showlegend: windows.errors.length > 0, hovertemplate: `${name}<br>%{y:,}/s at %{x} ${unit}<extra></extra>`,
    });
    const traces = [line("done", windows.operations, engineColour(engine), "solid")];
    if (windows.errors.length) traces.push(line("failed", windows.errors, ink, "dot"));
    const labelled = kills.map(({ member, at }) => ({ at, text: `member ${member} killed` }));
    return {
      traces,
      layout: layout(330, axis(`time since all clients began [${unit}]`, { rangemode: "tozero" }),
        axis("operations/s", { rangemode: "tozero", tickformat: "~s" }),
        { margin: { l: 64, r: 24, t: 44, b: 52 }, legend: LEGEND, shapes: marks(labelled, theme()), annotations: notes(labelled, theme()) }),
      columns: [`time [${unit}]`, "operations/s", "failed/s"],
      rows: windows.x.map((at, i) => [at, windows.operations[i], windows.errors[i] ?? 0]),
    };
  }

  function recovery(figure) {
    const made = data.recovery;
    if (!made) return null;
    const counts = new Map();
    const { height, legend } = legendFor(made.lines.map((line) => line.name), figure);
    return {
      traces: made.lines.map((line) => {
        // Several cases of an engine differ by their dashes.
        const own = counts.get(line.engine) ?? 0;
        counts.set(line.engine, own + 1);
        return {
          name: plain(shortened(line.name, 40)), x: line.x, y: line.y, mode: "lines", showlegend: made.lines.length > 1,
          line: { shape: "hv", color: engineColour(line.engine), width: 1.8, dash: DASHES[own % DASHES.length] },
          hovertemplate: `${plain(line.name)}<br>${plain(line.what)}<br>%{y} % at %{x} s<extra></extra>`,
        };
      }),
      layout: layout(330 + height, axis("time since the kill [s]", { zeroline: true }),
        axis("throughput, of the level before [%]", { rangemode: "tozero" }),
        { margin: { l: 64, r: 24, t: height, b: 52 }, legend, shapes: marks([{ at: 0 }], theme()) }),
      columns: ["engine", "case", "time since the kill [s]", "share of the level before [%]"],
      rows: made.lines.flatMap((line) => line.x.map((at, i) => [line.name, line.what, at, line.y[i]])),
    };
  }

  function balance() {
    const made = data.balance;
    if (!made) return null;
    const engines = [...new Set(made.points.map((point) => point.engine))];
    const titles = engines.map((engine) => made.points.find((point) => point.engine === engine).title);
    return {
      traces: engines.map((engine) => {
        const own = made.points.filter((point) => point.engine === engine);
        return {
          name: plain(own[0].title), mode: "markers", showlegend: false,
          x: own.map((point) => point.share), y: own.map(() => engines.indexOf(engine)),
          marker: { color: engineColour(engine), size: 11, opacity: 0.75 },
          text: own.map((point) => `${plain(point.title)}, member ${point.member}<br>${point.objects.toLocaleString("en")} objects, ${point.share} % of the mean`),
          hovertemplate: "%{text}<extra></extra>",
        };
      }),
      layout: layout(120 + 34 * engines.length, axis("objects [% of the mean]", { zeroline: false }),
        axis("", { range: [engines.length - 0.5, -0.5], tickvals: engines.map((_, i) => i), ticktext: titles.map(plain), zeroline: false }),
        { margin: { l: 64, r: 24, t: 16, b: 52 } }),
      columns: ["engine", "member", "objects", "share of the mean [%]"],
      rows: made.points.map((point) => [point.title, point.member, point.objects, point.share]),
    };
  }

  const tail = (made, figure) => made && curves.draw(made, figure, styled);
  const makers = {
    curve: (figure) => curves.draw(data.curve[figure.dataset.name], figure, styled),
    tail: (figure) => tail(data.tail[figure.dataset.name], figure),
    "case-tail": (figure) => tail(picked().latencies, figure),
    gantt, throughput, recovery, balance,
  };
  const NOTHING = {
    gantt: "Nothing to draw: no task was begun.",
    throughput: "Nothing to draw: there are no windows.",
    "case-tail": "Nothing to draw: there are no latencies.",
  };
  const draw = (figure) => {
    const { chart: kind, name } = figure.dataset;
    return show(figure, () => makers[kind](figure), ["gridbench-data", kind, ...(name ? [name] : [])].join("-"),
      NOTHING[kind] ?? "Nothing to draw: there are no values.");
  };
  const describe = () => { document.getElementById("about").textContent = picked().about; };
  if (chosen) {
    describe();
    chosen.addEventListener("change", () => {
      describe();
      document.querySelectorAll('[data-chart="gantt"], [data-chart="throughput"], [data-chart="case-tail"]').forEach(draw);
    });
  }
  drawAll(draw);
})();
