// Draws the pictures of the micro benchmarks; the numbers' texts come with the data.
"use strict";
(() => {
  const { SYMBOLS, axis, data, drawAll, engineColour, finite, layout, plain, show, shortened, theme } = plots;
  const { errors, hovers, scaled } = curves;

  const symbol = (engine) => SYMBOLS[[...data.ours, ...data.peers].indexOf(engine) % SYMBOLS.length];
  const NARROW = 420;

  function bars(made, figure) {
    if (!made.names.length) return null;
    const { ink, soft, axis: line } = theme();
    const narrow = figure.clientWidth < NARROW;
    const filled = made.kinds.map((kind, i) => kind === "limit" ? "rgba(0,0,0,0)" : engineColour(made.names[i]));
    // Bars on a logarithmic axis begin at its end.
    const base = made.axis.log ? made.axis.range[0] : 0;
    const names = made.names.map((name, i) => `${plain(shortened(name, narrow ? 18 : 30))}${made.kinds[i] === "limit" ? " (limit)" : ""}`);
    const longest = Math.max(...names.map((name) => name.length));
    const rows = names.map((_, i) => i);
    const ends = made.values.map((value, i) => finite(made.high[i]) ? Math.max(value, made.high[i]) : value);
    // Room for the texts behind the bars.
    const [from, to] = made.axis.range;
    const range = made.axis.log
      ? [Math.log10(from), Math.log10(to) + 0.26 * Math.log10(to / from)] : [from, to * 1.24];
    return {
      traces: [{
        type: "bar", orientation: "h", y: rows, x: made.values.map((value) => value - base), base,
        marker: { color: filled, line: { color: made.kinds.map((kind) => kind === "limit" ? soft : "rgba(0,0,0,0)"), width: 1 } },
        error_x: errors(made.values, made.low, made.high, ink),
        text: hovers(made.hover), textposition: "none", hovertemplate: "%{text}<extra></extra>",
      }, {
        type: "scatter", mode: "text", x: ends, y: rows, text: made.texts.map((text) => `  ${plain(text)}`),
        textposition: "middle right", textfont: { size: 12, color: ink }, hoverinfo: "skip", cliponaxis: false,
      }],
      layout: layout(36 + 25 * names.length, scaled(made.axis, "", (figure.clientWidth - 50 - 6.6 * longest) / 58, { range }),
        axis("", {
          tickvals: rows, ticktext: names, range: [names.length - 0.4, -0.6], showgrid: false, ticks: "",
          zeroline: false, linecolor: line,
        }),
        { showlegend: false, bargap: 0.3, margin: { l: 20, r: 16, t: 6, b: 26 }, dragmode: false }),
      still: true,
      columns: ["engine", "kind", `median [${made.unit}]`, "low", "high"],
      rows: made.names.map((name, i) => [name, made.kinds[i], made.values[i], made.low[i], made.high[i]]),
    };
  }

  const curve = (made, figure) => curves.draw(made, figure, (line) => {
    const own = data.ours.includes(line.engine);
    return { colour: engineColour(line.engine) ?? theme().soft, width: own ? 3 : 1.6, size: own ? 8 : 6, symbol: symbol(line.engine) };
  });

  function ratios(made, figure) {
    if (!made) return null;
    const { paper, ink } = theme();
    const narrow = figure.clientWidth < NARROW;
    const engines = data.ours.filter((engine) => made.points.some((point) => point.engine === engine));
    const traces = engines.map((engine) => {
      const points = made.points.filter((point) => point.engine === engine);
      const colour = engineColour(engine);
      const values = points.map((point) => point.value);
      return {
        name: plain(engine), x: values, y: points.map((point) => made.figures.indexOf(point.figure)),
        mode: "markers", cliponaxis: false, text: hovers(points.map((point) => point.hover)),
        marker: {
          size: 11, symbol: symbol(engine), line: { color: colour, width: 2 },
          color: points.map((point) => point.claim === "no difference" ? paper : colour),
          opacity: points.map((point) => point.claim === "provisional" ? 0.45 : 1),
        },
        error_x: errors(values, points.map((point) => point.low), points.map((point) => point.high), colour),
        hovertemplate: "%{text}<extra></extra>",
      };
    });
    const legend = 34 + 20 * Math.ceil(engines.length / Math.max(1, Math.floor(figure.clientWidth / 230)));
    const names = made.figures.map((name) => plain(shortened(name, narrow ? 18 : figure.clientWidth < 900 ? 40 : 64)));
    return {
      traces,
      layout: layout(legend + 70 + 24 * names.length, scaled(made.axis, "times as good, logarithmic", (figure.clientWidth - (narrow ? 150 : 330)) / 64),
        axis("", {
          tickvals: names.map((_, i) => i), ticktext: names, range: [names.length - 0.4, -0.6], ticks: "",
          zeroline: false,
        }),
        {
          margin: { l: 20, r: 24, t: legend, b: 54 }, showlegend: true, dragmode: false,
          shapes: [{ type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: { color: ink, width: 1.5 } }],
        }),
      still: true,
      columns: ["figure", "engine", "times as good", "low", "high", "claim"],
      rows: made.points.map((point) => [point.figure, point.engine, point.value, point.low, point.high, point.claim]),
    };
  }

  const makers = { bars, curve, percentiles: curve, peer: ratios, limit: ratios };
  drawAll((figure) => {
    const { chart: kind, name } = figure.dataset;
    const made = name === undefined ? data[kind] : data[kind][name];
    return show(figure, () => makers[kind](made, figure), ["gridbench-micro", kind, ...(name === undefined ? [] : [name])].join("-"),
      "Nothing to draw: there are no values.");
  });
})();
