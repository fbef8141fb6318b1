// Draws the report's pictures from the data embedded in the page, and makes them downloadable.
"use strict";
(() => {
  const { DASHES, LEGEND, asCsv, axis, data, engineColour, finite, layout, plain, save, show, shortened, theme } = plots;

  const COLOURS = data.colours.phases;
  // Column, name, colour, width. Stamps that mostly coincide are drawn wide below narrow.
  const STAMPS = [
    ["retrieve", "retrieve", COLOURS.output, 5], ["calc_out", "calc-out", COLOURS.sleep, 1.5],
    ["calc_in", "calc-in", COLOURS.input, 5], ["queued", "queued", COLOURS.queue, 1.5],
    ["submit", "submit", COLOURS.dispatch, 2],
  ];
  const DECADES = [
    [1e-7, "0.1 µs"], [1e-6, "1 µs"], [1e-5, "10 µs"], [1e-4, "100 µs"], [1e-3, "1 ms"],
    [1e-2, "10 ms"], [0.1, "100 ms"], [1, "1 s"], [10, "10 s"], [100, "100 s"], [1e3, "1000 s"],
    [1e4, "10,000 s"], [1e5, "100,000 s"],
  ];
  const DRAWN_TASKS = 20000; // more would make a picture slow, and could not be told apart
  const SHOWN_ROWS = 50;
  const NAMED_LANES = 45;
  const MOST_ON_PATH = 20;

  // Runs of one engine have its colour, and are told apart by their lines.
  const runColour = (run) => engineColour(run.engine);
  const runDash = (run) => {
    const own = data.runs.filter((other) => other.engine === run.engine);
    return DASHES[own.indexOf(run) % DASHES.length];
  };

  function duration(seconds) {
    if (!finite(seconds)) return "–";
    const size = Math.abs(seconds);
    if (size === 0) return "0 s";
    if (size < 1e-3) return `${(seconds * 1e6).toPrecision(3)} µs`;
    if (size < 1) return `${(seconds * 1e3).toPrecision(4)} ms`;
    return `${seconds.toPrecision(Math.max(4, Math.ceil(Math.log10(size)) + 3))} s`;
  }

  // A column is a list, one value for all rows, or words with codes.
  function columnReader(tasks, name) {
    const column = tasks.columns[name];
    const at = (values) => Array.isArray(values) ? (row) => values[row] : () => values;
    if (column && column.words) {
      const code = at(column.codes);
      return (row) => column.words[code(row)];
    }
    return at(column);
  }

  function rowsSortedBy(tasks, name) {
    const value = columnReader(tasks, name);
    const rows = Array.from({ length: tasks.count }, (_, row) => row)
      .filter((row) => finite(value(row)));
    return rows.sort((a, b) => value(a) - value(b) || a - b);
  }

  function evenly(list, most) {
    if (list.length <= most) return list;
    const step = (list.length - 1) / (most - 1);
    return Array.from({ length: most }, (_, index) => list[Math.round(index * step)]);
  }

  const endMark = (x, colour, text) => ({
    shape: {
      type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper",
      line: { color: colour, width: 1.5, dash: "dash" },
    },
    note: {
      x, y: 1, yref: "paper", yanchor: "bottom", xanchor: "right", text, showarrow: false,
      font: { size: 12, color: colour },
    },
  });

  // Each chart: { traces, layout, columns, rows } with the drawn numbers, or null if there are none.
  const charts = {
    totals() {
      const runs = data.runs.filter((run) => finite(run.end) && run.end > 0);
      if (!runs.length) return null;
      const { ink } = theme();
      const middle = (values) => {
        const sorted = [...values].sort((a, b) => a - b);
        return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
      };
      const order = runs.map((run) => ({ run, median: middle(run.totals) })).sort((a, b) => a.median - b.median);
      const names = order.map(({ run }) => plain(shortened(run.name, 28)));
      const longest = Math.max(...runs.flatMap((run) => run.totals));
      const rows = order.map((_, row) => row);
      return {
        traces: [{
          type: "bar", orientation: "h", y: rows, x: order.map(({ median }) => median), width: 0.6,
          marker: {
            color: order.map(({ run }) => run.counts ? runColour(run) : `${runColour(run)}55`),
            line: { width: 1.5, color: order.map(({ run }) => runColour(run)) },
          },
          hovertemplate: "%{x:.4f} s<extra></extra>", showlegend: false,
        }, {
          type: "scatter", mode: "markers", showlegend: false,
          x: order.flatMap(({ run }) => run.totals), y: order.flatMap(({ run }, row) => run.totals.map(() => row)),
          marker: { symbol: "line-ns-open", size: 14, color: ink, line: { width: 1.5 } },
          hovertemplate: "a round: %{x:.4f} s<extra></extra>",
        }, {
          type: "scatter", mode: "text", showlegend: false, hoverinfo: "skip", cliponaxis: false, y: rows,
          x: order.map(({ run }) => Math.max(...run.totals)), textposition: "middle right", textfont: { size: 13, color: ink },
          text: order.map(({ median }, row) => `  ${duration(median)}${row ? ` (${(median / order[0].median).toPrecision(3)} times)` : ""}`),
        }],
        layout: layout(84 + 36 * order.length, axis("total time [s]",
          { range: [0, longest * 1.3] }), axis("", {
          tickvals: rows, ticktext: names, range: [order.length - 0.5, -0.5], showgrid: false, ticks: "", zeroline: false,
        }), { margin: { l: 20, r: 16, t: 6, b: 52 }, dragmode: false }),
        still: true,
        columns: ["run", "total_s"],
        rows: runs.flatMap((run) => run.totals.map((total) => [run.name, total])),
      };
    },

    running() {
      const runs = data.runs.filter((run) => run.running.time.length);
      if (!runs.length) return null;
      const several = data.runs.length > 1;
      const traces = runs.map((run) => {
        const colour = runColour(run);
        return {
          name: plain(run.name), x: [0, ...run.running.time], y: [0, ...run.running.running],
          mode: "lines", line: { shape: "hv", color: colour, width: 1.6, dash: runDash(run) },
          fill: several ? "none" : "tozeroy", fillcolor: `${colour}1f`,
          showlegend: several, hovertemplate: "%{y} tasks at %{x:.4f} s<extra>%{fullData.name}</extra>",
        };
      });
      const shapes = [...new Set(runs.map((run) => run.workers))].map((workers) => ({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: workers, y1: workers,
        line: { color: theme().soft, width: 1, dash: "dot" },
      }));
      const highest = Math.max(...runs.map((run) => Math.max(run.workers, ...run.running.running)));
      return {
        traces,
        layout: layout(360, axis("time since t = 0 [s]", { rangemode: "tozero" }),
          axis("tasks running", { range: [0, highest * 1.06] }), { shapes }),
        columns: ["run", "time_s", "running"],
        rows: runs.flatMap((run) => run.running.time.map((t, i) => [run.name, t, run.running.running[i]])),
      };
    },

    cost: () => stacked("cost", "seconds per worker"),
    phases: () => stacked("phases", "seconds per task, mean"),

    overhead() {
      const traces = [];
      const rows = [];
      let hidden = 0;
      data.runs.forEach((run) => {
        for (const [kind, dash] of [["handling", "solid"], ["round trip", "dot"]]) {
          const { values, share } = run.overhead[kind];
          values.forEach((value, i) => rows.push([run.name, kind, value, share[i]]));
          // A logarithmic axis has no place for 0 and less.
          const kept = values.map((_, i) => i).filter((i) => values[i] > 0);
          hidden += values.length - kept.length;
          if (!kept.length) continue;
          traces.push({
            name: plain(data.runs.length > 1 ? `${run.name}: ${kind}` : kind),
            x: kept.map((i) => values[i]), y: kept.map((i) => share[i] * 100),
            mode: kept.length > 1 ? "lines" : "markers",
            line: { color: runColour(run), width: kind === "handling" ? 2.2 : 1.6, dash, shape: "hv" },
            hovertemplate: "%{y:.2f} % of the tasks: at most %{x:.4s}s<extra>%{fullData.name}</extra>",
          });
        }
      });
      if (!traces.length) return null;
      const shapes = [50, 90, 99].map((level) => ({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: level, y1: level,
        line: { color: theme().axis, width: 1, dash: "dot" },
      }));
      const annotations = [50, 90, 99].map((level) => ({
        xref: "paper", x: 0.004, y: level, xanchor: "left", yanchor: "top", text: `p${level}`,
        showarrow: false, font: { size: 11, color: theme().soft },
      }));
      if (hidden) {
        annotations.push({
          xref: "paper", yref: "paper", x: 1, y: 1, xanchor: "right", yanchor: "bottom",
          showarrow: false, font: { size: 12, color: theme().soft },
          text: "overheads of 0 and less have no place on this axis",
        });
      }
      return {
        traces,
        layout: layout(400, axis("overhead per task, logarithmic", {
          type: "log", tickvals: DECADES.map(([value]) => value), ticktext: DECADES.map(([, text]) => text),
          minor: { ticks: "outside", ticklen: 3, dtick: "D1" },
        }), axis("share of the tasks [%]", { range: [0, 101.5] }), { shapes, annotations }),
        columns: ["run", "kind", "overhead_s", "share"],
        rows,
      };
    },

    stamps(index, order) {
      const { tasks, name } = data.runs[index];
      const rows = rowsSortedBy(tasks, order);
      if (!rows.length) return null;
      const ranks = evenly(rows.map((_, rank) => rank), DRAWN_TASKS);
      const tid = columnReader(tasks, "tid");
      const traces = [];
      const drawn = [];
      for (const [column, label, colour, width] of STAMPS) {
        const value = columnReader(tasks, column);
        const y = ranks.map((rank) => value(rows[rank]));
        if (!y.some(finite)) continue;
        drawn.push([column, value]);
        traces.push({
          name: label, x: ranks.map((rank) => rank + 1), y, customdata: ranks.map((rank) => tid(rows[rank])),
          mode: ranks.length > 100 ? "lines" : "lines+markers",
          marker: { size: width + 3, color: colour }, line: { color: colour, width },
          hovertemplate: `${label} of task %{customdata}: %{y:.6f} s<extra></extra>`,
        });
      }
      const reversedLegend = { legend: { ...LEGEND, traceorder: "reversed" } };
      const note = ranks.length < rows.length
        ? ` (${ranks.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} drawn)` : "";
      return {
        traces,
        layout: layout(440, axis(`tasks, sorted by ${order} time${note}`),
          axis("time since t = 0 [s]", { rangemode: "tozero" }), reversedLegend),
        columns: ["run", "rank", "tid", ...drawn.map(([column]) => column)],
        rows: ranks.map((rank) => [name, rank + 1, tid(rows[rank]),
          ...drawn.map(([, value]) => value(rows[rank]))]),
      };
    },

    gantt(index) {
      const run = data.runs[index];
      const { tasks } = run;
      const read = Object.fromEntries(["tid", "calc_in", "calc_out", "retrieve", "host", "status"]
        .map((name) => [name, columnReader(tasks, name)]));
      const perLane = run.lanes.map(() => []);
      tasks.lane.forEach((lane, row) => { if (lane >= 0) perLane[lane].push(row); });
      const total = perLane.reduce((sum, rows) => sum + rows.length, 0);
      if (!total) return null;
      // Too many tasks: whole lanes, evenly picked, so that a lane never looks idle that was not.
      const share = Math.max(1, Math.floor(run.lanes.length * Math.min(1, DRAWN_TASKS / total)));
      const even = evenly(run.lanes.map((_, lane) => lane), Math.max(share, 2));
      // What the last result waited for is always among them, as far as that is of few workers.
      const onPath = [...new Set(run.path.map(([, lane]) => lane))].slice(-MOST_ON_PATH);
      const lanes = [...new Set([...even, ...onPath])].sort((a, b) => a - b);
      const boxes = { "start-up": [[], []], input: [[], []], processing: [[], []], output: [[], []] };
      const put = (phase, from, to, line) => {
        if (!(to > from)) return;
        const [x, y] = boxes[phase];
        x.push(from, to, to, from, null);
        y.push(line - 0.4, line - 0.4, line + 0.4, line + 0.4, null);
      };
      const hover = { x: [], y: [], text: [] };
      const rows = [];
      lanes.forEach((lane, position) => {
        const line = position + 1;
        perLane[lane].sort((a, b) => read.calc_in(a) - read.calc_in(b));
        for (const row of perLane[lane].slice(0, DRAWN_TASKS)) {
          const [begin, end, back] = [read.calc_in(row), read.calc_out(row), read.retrieve(row)];
          const input = tasks.input_begin[row] ?? begin;
          put(tasks.first[row] && run.cold ? "start-up" : "input", input, begin, line);
          put("processing", begin, end, line);
          if (finite(back)) put("output", end, back, line);
          const text = `task ${read.tid(row)} on ${plain(shortened(run.lanes[lane], 60))}`
            + `<br>calc-in ${begin.toFixed(6)} s, calc-out ${end.toFixed(6)} s`
            + `<br>input ${duration(begin - input)}, processing ${duration(end - begin)}, `
            + `output ${finite(back) ? duration(back - end) : "–"}`;
          hover.x.push(begin, (begin + end) / 2, end);
          hover.y.push(line, line, line);
          hover.text.push(text, text, text);
          rows.push([run.name, run.lanes[lane], read.tid(row), input, begin, end, back]);
        }
      });
      const colours = {
        "start-up": ["start-up and first input", COLOURS["start-up"]], input: ["input", COLOURS.input],
        processing: ["processing", COLOURS.sleep], output: ["output", COLOURS.output],
      };
      const traces = Object.entries(boxes).filter(([, [x]]) => x.length).map(([phase, [x, y]]) => ({
        name: colours[phase][0], x, y, fill: "toself", fillcolor: colours[phase][1],
        // A white edge keeps tasks apart that follow each other, while there is room for it.
        mode: lanes.length <= 120 && rows.length <= 40 * lanes.length && phase === "processing" ? "lines" : "none",
        line: { color: theme().paper, width: 0.6, simplify: false }, hoverinfo: "skip",
      }));
      traces.push({
        ...hover, mode: "lines", line: { width: 0, color: "rgba(0,0,0,0)" }, showlegend: false,
        hovertemplate: "%{text}<extra></extra>",
      });
      const path = { x: [], y: [], text: [] };
      for (const [kind, lane, begin, end] of run.path) {
        const line = lanes.indexOf(lane) + 1;
        if (line === 0) continue;
        path.x.push(begin, end);
        path.y.push(line, line);
        const text = `the last result waited: ${kind}, ${duration(end - begin)}`;
        path.text.push(text, text);
      }
      if (path.x.length) {
        traces.push({
          ...path, name: "critical path", mode: "lines", line: { color: theme().ink, width: 2 },
          hovertemplate: "%{text}<extra></extra>",
        });
      }
      const named = lanes.length <= NAMED_LANES;
      const yaxis = axis(named ? "" : "worker", {
        range: [lanes.length + 0.6, 0.4], showgrid: false, zeroline: false,
        ...(named ? {
          tickvals: lanes.map((_, position) => position + 1),
          ticktext: lanes.map((lane) => plain(shortened(run.lanes[lane], 24))),
        } : {}),
      });
      const marks = finite(run.end) ? endMark(run.end, theme().ink, `end of job, ${duration(run.end)}`) : null;
      if (lanes.length < run.lanes.length || total < tasks.all) {
        const note = document.querySelector(`[data-gantt-note="${index}"]`);
        note.textContent = `One line per worker; drawn are ${lanes.length} of ${run.lanes.length} `
          + `workers, with ${rows.length.toLocaleString("en")} of ${tasks.all.toLocaleString("en")} tasks.`;
      }
      const height = Math.round(Math.min(860, Math.max(220, 130 + lanes.length * 18)));
      return {
        traces,
        layout: layout(height, axis("time since t = 0 [s]", { rangemode: "tozero" }), yaxis, {
          hoverdistance: 30,
          shapes: marks ? [marks.shape] : [], annotations: marks ? [marks.note] : [],
        }),
        columns: ["run", "worker", "tid", "input_begin", "calc_in", "calc_out", "retrieve"],
        rows,
      };
    },
  };

  // A case, its engine and where the workers were have a line each, so that none is cut off.
  const inLines = (name) => name.split(/, | (?=on )/).map((line) => plain(shortened(line, 40))).join("<br>");

  function stacked(key, title) {
    const runs = data.runs.filter((run) => Object.values(run[key]).some((value) => finite(value)));
    if (!runs.length) return null;
    const parts = Object.keys(runs[0][key]);
    // Names may be alike as far as there is room for them, so bars are placed by number.
    const places = runs.map((_, index) => index);
    const names = runs.map((run) => inLines(run.name));
    const seen = parts.filter((part) => runs.some((run) => finite(run[key][part]) && run[key][part] !== 0));
    const legend = 34 + 20 * Math.ceil(seen.length / 2);
    const traces = seen.map((part) => ({
      type: "bar", orientation: "h", name: part, y: places, x: runs.map((run) => run[key][part]),
      marker: { color: COLOURS[part] },
      text: runs.map((run) => run.unsure.includes(part) && Math.abs(run[key][part]) < run.clock_error
        ? `below ${duration(run.clock_error)}, to which clocks are known` : duration(run[key][part])),
      hovertemplate: `${part}: %{text}<extra></extra>`, textposition: "none", width: 0.55,
    }));
    return {
      traces,
      layout: layout(100 + legend + 44 * runs.length, axis(title, { rangemode: "tozero" }),
        axis("", {
          range: [runs.length - 0.5, -0.5], showgrid: false, zeroline: false,
          tickvals: places, ticktext: names,
        }),
        { barmode: "relative", margin: { l: 20, r: 24, t: legend, b: 52 } }),
      columns: ["run", ...parts],
      rows: runs.map((run) => [run.name, ...parts.map((part) => run[key][part])]),
    };
  }

  // Draws the stamps again in another order.
  function drawStamps(figure) {
    const { run, order } = figure.dataset;
    return show(figure, () => charts.stamps(Number(run), order), `${data.file}-stamps-${Number(run) + 1}-${order}`, "");
  }

  function taskRows(index, most) {
    const { tasks } = data.runs[index];
    const names = Object.keys(tasks.columns);
    const read = names.map((name) => columnReader(tasks, name));
    const count = Math.min(most, tasks.count);
    return { names, rows: Array.from({ length: count }, (_, row) => read.map((value) => value(row))) };
  }

  function fillTaskTable(details) {
    if (details.querySelector("table")) return;
    const { tasks } = data.runs[Number(details.dataset.tasks)];
    const { names, rows } = taskRows(Number(details.dataset.tasks), SHOWN_ROWS);
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const name of names) {
      const cell = document.createElement("th");
      cell.textContent = name.replace("_", "-");
      head.append(cell);
    }
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const value of row) {
        const text = finite(value) ? value : "–";
        line.insertCell().textContent = Number.isInteger(text) || typeof text === "string" ? text : text.toFixed(6);
      }
    }
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.append(table);
    details.querySelector("summary").textContent =
      `${rows.length} of ${tasks.all.toLocaleString("en")} rows as a table`;
    details.append(scroll);
  }

  function main() {
    for (const details of document.querySelectorAll("[data-tasks]")) fillTaskTable(details);
    for (const control of document.querySelectorAll("[data-csv]")) {
      const index = Number(control.dataset.csv);
      const { tasks } = data.runs[index];
      if (tasks.count < tasks.all) {
        control.textContent = `Download ${tasks.count.toLocaleString("en")} of `
          + `${tasks.all.toLocaleString("en")} tasks as CSV`;
      }
      control.addEventListener("click", () => {
        const { names, rows } = taskRows(index, Infinity);
        save(`gridbench-tasks-${index + 1}.csv`, asCsv(names, rows), "text/csv");
      });
    }
    for (const control of document.querySelectorAll(".switch")) {
      const figure = document.querySelector(`[data-chart="stamps"][data-run="${control.dataset.run}"]`);
      for (const choice of control.querySelectorAll("button")) {
        choice.addEventListener("click", () => {
          for (const other of control.querySelectorAll("button")) {
            other.setAttribute("aria-pressed", String(other === choice));
          }
          figure.dataset.order = choice.dataset.order;
          drawStamps(figure);
        });
      }
    }
  }

  for (const kind of Object.keys(charts)) {
    plots.makers[kind] ??= (_, { dataset }) => charts[kind](Number(dataset.run), dataset.order ?? "submit");
  }
  main();
})();
