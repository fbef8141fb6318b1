// Curves with error bars, on axes whose ticks and texts come with the data.
"use strict";
const curves = (() => {
  const { DASHES, LEGEND, SYMBOLS, axis, finite, layout, plain } = plots;
  const hovers = (lists) => lists.map((lines) => lines.map(plain).join("<br>"));

  // `room`: how many ticks find a place; more would be turned or overlap.
  const scaled = (made, title, room, more) => {
    const most = Math.max(2, Math.floor(room));
    let picked = made.ticks.map((_, index) => index);
    if (made.log && picked.length > most) {
      const powers = picked.filter((index) => Number.isInteger(Number(Math.log10(made.ticks[index]).toFixed(6))));
      if (powers.length > 1) picked = powers;
    }
    const every = Math.ceil(picked.length / most);
    picked = picked.filter((_, index) => index % every === 0);
    const kept = (list) => picked.map((index) => list[index]);
    return axis(title, {
      type: made.log ? "log" : "linear", tickvals: kept(made.ticks), ticktext: kept(made.texts).map(plain),
      tickangle: 0, range: made.log ? made.range.map(Math.log10) : made.range, ...more,
    });
  };

  // Distances to both sides, as Plotly wants them; none where there is no interval.
  const errors = (values, low, high, colour) => ({
    type: "data", visible: [...low, ...high].some(finite), symmetric: false, thickness: 1.4, width: 3, color: colour,
    array: values.map((value, i) => finite(high[i]) ? high[i] - value : null),
    arrayminus: values.map((value, i) => finite(low[i]) ? value - low[i] : null),
  });

  // A line with a dash of its own is a limit or an expectation, and has no marks; hollow marks do
  // not count. What is `unnamed` is not in the legend, and where a fit goes through `marks` no line
  // does.
  function draw(made, figure) {
    const lines = made?.lines.filter((line) => line.x.length) ?? [];
    if (!lines.length) return null;
    const traces = lines.map((line) => {
      const { colour } = line;
      const symbol = SYMBOLS[line.index % SYMBOLS.length];
      return {
        name: plain(line.name), x: line.x, y: line.y, text: hovers(line.hover),
        mode: line.dash ? "lines" : line.marks ? "markers" : "lines+markers", showlegend: lines.length > 1 && !line.unnamed, line: { color: colour, width: line.dash ? 1.4 : 2, dash: line.dash ?? DASHES[line.variant ? 2 : 0] },
        marker: {
          color: colour, size: 7,
          symbol: line.hollow ? line.hollow.map((hollow) => hollow ? `${symbol}-open` : symbol) : symbol,
        },
        ...(line.low && line.high ? { error_y: errors(line.y, line.low, line.high, colour) } : {}),
        hovertemplate: "%{text}<extra></extra>",
      };
    });
    const named = lines.filter((line) => !line.unnamed);
    const entry = 50 + 7 * Math.max(...named.map((line) => line.name.length));
    const perRow = Math.max(1, Math.floor((figure.clientWidth - 90) / (entry + 20)));
    const legend = 30 + 20 * Math.ceil(named.length / perRow);
    return {
      traces,
      layout: layout(340 + legend, scaled(made.x, made.x.title, (figure.clientWidth - 100) / 64, { zeroline: false }),
        scaled(made.y, made.y.title, 9, { zeroline: false }),
        { margin: { l: 64, r: 24, t: legend, b: 52 }, legend: { ...LEGEND, entrywidth: entry } }),
      columns: ["line", `x [${made.units[0]}]`, `y [${made.units[1]}]`, "low", "high"],
      rows: lines.flatMap((line) => line.x.map((x, i) => [line.name, x, line.y[i], line.low?.[i], line.high?.[i]])),
    };
  }

  return { draw };
})();
