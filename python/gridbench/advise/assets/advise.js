// Draws the picture of an advice: total time over the number of tasks, with the best one marked.
"use strict";
(() => {
  const { axis, drawAll, layout, plain, show, theme } = plots;
  const data = JSON.parse(document.getElementById("report-data").textContent);

  function total() {
    const { accent, soft, ink } = theme();
    const x = data.tasks;
    const best = x.indexOf(data.best);
    const hidden = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    return {
      traces: [
        { x, y: data.low, ...hidden },
        { x, y: data.high, ...hidden, fill: "tonexty", fillcolor: "rgba(47,127,214,0.18)" },
        { x, y: data.ideal, name: "without overhead", mode: "lines", hoverinfo: "skip",
          line: { color: soft, width: 1.5, dash: "dot" } },
        { x, y: data.total, name: "expected", mode: "lines+markers", line: { color: accent, width: 2 },
          marker: { size: 6 }, text: data.texts.map(plain), hoverinfo: "text" },
        { x: [data.best], y: [data.total[best]], name: `best: ${plain(data.best_text)}`, mode: "markers",
          marker: { size: 14, symbol: "star", color: ink }, text: [plain(data.best_text)], hoverinfo: "text" },
      ],
      layout: layout(420, axis("tasks", { type: "log" }), axis("seconds", { type: "log" })),
      columns: ["tasks", "total_s", "low_s", "high_s", "without_overhead_s"],
      rows: x.map((tasks, i) => [tasks, data.total[i], data.low[i], data.high[i], data.ideal[i]]),
    };
  }

  drawAll((figure) => show(figure, total, "advice", "Nothing to draw."));
})();
