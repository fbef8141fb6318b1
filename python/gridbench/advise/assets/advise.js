// Draws the picture of an advice: total time over the number of tasks, with the best one marked, and
// beside it what splits took that were tried.
"use strict";
(() => {
  const { axis, data, drawAll, engineColour, layout, plain, show, theme } = plots;
  const [engine] = Object.keys(data.colours.engines);

  // Splits that were run on the cores of the plot, and on others: `group` holds one of the two.
  function measured(group, number) {
    const color = theme().ink;
    const above = group.largest.map((one, i) => one - group.median[i]);
    const below = group.smallest.map((one, i) => group.median[i] - one);
    return {
      x: group.tasks, y: group.median, name: plain(group.name), mode: "markers",
      marker: { size: 9, color, symbol: number ? "square" : "diamond" },
      error_y: { type: "data", symmetric: false, array: above, arrayminus: below, color, thickness: 1.5, width: 4 },
      text: group.texts.map(plain), hoverinfo: "text",
    };
  }

  const took = (group, tasks) => {
    const at = group.tasks.indexOf(tasks);
    return at < 0 ? null : group.median[at];
  };

  function total() {
    const { soft, ink } = theme();
    const own = engineColour(engine);
    const x = data.tasks;
    const best = x.indexOf(data.best);
    const hidden = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    return {
      traces: [
        { x, y: data.low, ...hidden },
        { x, y: data.high, ...hidden, fill: "tonexty", fillcolor: `${own}2e` },
        { x, y: data.ideal, name: "without overhead", mode: "lines", hoverinfo: "skip",
          line: { color: soft, width: 1.5, dash: "dot" } },
        { x, y: data.total, name: "expected", mode: "lines+markers", line: { color: own, width: 2 },
          marker: { size: 6 }, text: data.texts.map(plain), hoverinfo: "text" },
        { x: [data.best], y: [data.total[best]], name: `best: ${plain(data.best_text)}`, mode: "markers",
          marker: { size: 14, symbol: "star", color: ink }, text: [plain(data.best_text)], hoverinfo: "text" },
        ...data.tried.map(measured),
      ],
      layout: layout(420, axis("tasks", { type: "log" }), axis("seconds", { type: "log" })),
      columns: ["tasks", "total_s", "low_s", "high_s", "without_overhead_s",
        ...data.tried.map((group) => `${group.name}, s`)],
      rows: x.map((tasks, i) => [tasks, data.total[i], data.low[i], data.high[i], data.ideal[i],
        ...data.tried.map((group) => took(group, tasks))]),
    };
  }

  // What limits over task time and data: a square for each, coloured by the largest part.
  function limits(groups) {
    const told = groups.filter((group) => group.seconds.length);
    return {
      traces: told.map((group) => ({
        x: group.seconds, y: group.sizes, name: plain(group.name), mode: "markers",
        marker: { size: 22, color: group.colour, line: { width: 3, color: group.colour },
          symbol: group.measured.map((known) => (known ? "square" : "square-open")) },
        text: group.texts.map(plain), hoverinfo: "text",
      })),
      layout: layout(420, axis("seconds of a task", { type: "log" }),
        axis("data of a task", { type: "category", categoryorder: "array", categoryarray: groups[0].all_sizes })),
      columns: ["task_s", "data", "limits", "measured"],
      rows: told.flatMap((group) => group.seconds.map((seconds, i) =>
        [seconds, group.sizes[i], group.name, group.measured[i]])),
    };
  }

  drawAll((figure) => {
    const { chart, name } = figure.dataset;
    return chart === "limits"
      ? show(figure, () => limits(data.maps[name]), `limits-${name}`, "Nothing to draw.")
      : show(figure, total, "advice", "Nothing to draw.");
  });
})();
