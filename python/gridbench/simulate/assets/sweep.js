// Draws the pictures of a sweep: lines over the value that was varied.
"use strict";
(() => {
  const { axis, data, drawAll, layout, plain, show, theme } = plots;
  const COLOURS = data.colours.series;

  const across = () => axis(data.axis, {
    type: data.log ? "log" : "linear", tickvals: data.x, ticktext: data.texts.map(plain),
    zeroline: false,
  });

  function lines(made, title, more) {
    const traces = made.lines.map((line, index) => {
      const colour = line.quiet ? theme().soft : COLOURS[index % COLOURS.length];
      return {
        name: plain(line.name), x: data.x, y: line.y, mode: "lines+markers",
        line: { color: colour, width: 2, dash: line.quiet ? "dot" : "solid" },
        marker: { color: colour, size: 7 }, text: line.texts.map(plain),
        hovertemplate: `${plain(line.name)}<br>%{text}<extra></extra>`,
      };
    });
    return {
      traces, layout: layout(400, across(), axis(title, more)),
      columns: [data.axis, ...made.lines.map((line) => line.name)],
      rows: data.x.map((x, i) => [x, ...made.lines.map((line) => line.y[i])]),
    };
  }

  function stacked(made) {
    const names = data.texts.map(plain);
    return {
      traces: made.lines.map((line, index) => ({
        type: "bar", name: plain(line.name), x: names, y: line.y,
        marker: { color: data.colours.phases[line.name] ?? COLOURS[index % COLOURS.length] }, text: line.texts.map(plain),
        textposition: "none", hovertemplate: `${plain(line.name)}<br>%{text}<extra></extra>`,
      })),
      layout: layout(420, axis(data.axis, { type: "category" }),
        axis("share of the total", { tickformat: ".0%", range: [0, 1] }), { barmode: "stack" }),
      columns: [data.axis, ...made.lines.map((line) => line.name)],
      rows: data.x.map((x, i) => [x, ...made.lines.map((line) => line.y[i])]),
    };
  }

  const makers = {
    total: () => lines(data.total, "seconds", { type: "log" }),
    efficiency: () => lines(data.efficiency, "share of the time", { tickformat: ".0%", rangemode: "tozero" }),
    parts: () => stacked(data.parts),
  };
  drawAll((figure) => {
    const kind = figure.dataset.chart;
    return show(figure, makers[kind], `gridbench-simulate-${kind}`, "Nothing to draw.");
  });
})();
