// What the pictures of all pages have in common: how they look, and how they can be saved.
"use strict";
const plots = (() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];
  // Pixels of CSS: what an A4 or letter page has room for, below a heading and a paragraph.
  const PAPER = { width: 680, height: 800 };
  const finite = (value) => value !== null && value !== undefined;
  // Plotly reads a little HTML in texts; names from outside are to be shown as they are.
  const plain = (text) => String(text)
    .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // The page's own colours, as the reader's preference for light or dark has set them.
  function theme() {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(["ink", "soft", "paper", "accent", "grid", "axis"]
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  const axis = (title, more) => {
    const { grid, axis: line } = theme();
    return {
      title: { text: title, standoff: 12 }, gridcolor: grid, zerolinecolor: line, linecolor: line,
      ticks: "outside", tickcolor: line, automargin: true, ...more,
    };
  };
  const LEGEND = {
    orientation: "h", x: 0, y: 1, yanchor: "bottom", xanchor: "left", traceorder: "normal",
  };
  const layout = (height, xaxis, yaxis, more) => {
    const { ink, paper } = theme();
    return {
      height, xaxis, yaxis, autosize: true,
      margin: { l: 64, r: 24, t: 40, b: 52 },
      font: { family: 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", Arial, sans-serif', size: 13, color: ink },
      paper_bgcolor: paper, plot_bgcolor: paper, hovermode: "closest",
      hoverlabel: { font: { size: 12 } },
      legend: LEGEND,
      ...more,
    };
  };

  function save(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function asCsv(columns, rows) {
    const cell = (value) => {
      const text = finite(value) ? String(value) : "";
      return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  function button(text, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "tool";
    made.textContent = text;
    made.addEventListener("click", action);
    return made;
  }

  // Draws a chart, { traces, layout, columns, rows } or null, with the buttons that save it under
  // `filename`.
  function show(figure, chart, filename) {
    figure.replaceChildren();
    if (!chart) {
      const empty = document.createElement("p");
      empty.className = "empty";
      empty.textContent = "Nothing to draw: too little was measured.";
      figure.append(empty);
      return Promise.resolve();
    }
    const plot = document.createElement("div");
    const tools = document.createElement("div");
    tools.className = "tools";
    for (const format of ["svg", "png"]) {
      tools.append(button(format.toUpperCase(), () => Plotly.downloadImage(plot, {
        format, filename, width: plot.clientWidth, height: plot.clientHeight, scale: format === "png" ? 2 : 1,
      })));
    }
    tools.append(button("CSV", () => save(`${filename}.csv`, asCsv(chart.columns, chart.rows), "text/csv")));
    figure.append(plot, tools);
    return Plotly.newPlot(plot, chart.traces, chart.layout, {
      responsive: true, displaylogo: false, showLink: false,
      modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    });
  }

  // Nothing that is folded has a width, so it is drawn when it is unfolded.
  const folded = (figure) => figure.closest("details:not([open])") !== null;

  // Draws all pictures by `draw(figure)`, and again when the page's colours change.
  async function drawAll(draw) {
    const root = document.documentElement;
    const all = [...document.querySelectorAll("[data-chart]")];
    const isMissing = (figure) => !figure.hasChildNodes() && !folded(figure);
    const drawMissing = async () => {
      for (const figure of all) {
        if (!isMissing(figure)) continue;
        await draw(figure);
        // Let the browser show what there is and react between two pictures.
        await new Promise((resolve) => { setTimeout(resolve, 0); });
      }
    };
    document.querySelectorAll("details").forEach((fold) => fold.addEventListener("toggle", drawMissing));
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const again = () => all.forEach((figure) => draw(figure));
    dark.addEventListener("change", again);
    // A link into what is folded unfolds it.
    const unfold = () => {
      const place = location.hash && document.getElementById(location.hash.slice(1));
      const fold = place && place.querySelector(":scope > details.folded");
      if (fold) fold.open = true;
    };
    window.addEventListener("hashchange", unfold);
    unfold();
    // On paper caveats are unfolded; further tables and the details of engines are left out.
    let notices = [];
    const sizes = (change) => document.querySelectorAll(".js-plotly-plot")
      .forEach((plot) => { Plotly.relayout(plot, change(plot)); });
    window.addEventListener("beforeprint", () => {
      // A page may be printed before all its pictures are there.
      all.filter(isMissing).forEach(draw);
      sizes((plot) => {
        plot.onScreen = plot.layout.height;
        return { width: PAPER.width, height: Math.min(plot.onScreen, PAPER.height), autosize: false };
      });
      notices = [...document.querySelectorAll("details.notice:not([open])")];
      notices.forEach((notice) => { notice.open = true; });
    });
    window.addEventListener("afterprint", () => {
      sizes((plot) => ({ width: null, height: plot.onScreen, autosize: true }));
      notices.forEach((notice) => { notice.open = false; });
    });
    // Paper is white.
    const printed = (light) => () => {
      if (!dark.matches) return;
      root.toggleAttribute("data-light", light);
      again();
    };
    window.addEventListener("beforeprint", printed(true));
    window.addEventListener("afterprint", printed(false));
    await drawMissing();
    // Said to whoever waits for the pictures: tests, for example.
    root.dataset.ready = "true";
  }

  // A chart from Plotly's specification: texts are shown as they are, `var(--ink)` is the page's ink.
  const TEXTS = ["name", "text", "hovertext", "ticktext", "title"];
  function themed(made) {
    if (!made) return null;
    const colours = theme();
    const convert = (value, key) => {
      if (typeof value === "string") {
        const named = /^var\(--(\w+)\)$/.exec(value);
        return named ? colours[named[1]] : TEXTS.includes(key) ? plain(value).replace(/\n/g, "<br>") : value;
      }
      if (Array.isArray(value)) return value.map((one) => convert(one, key));
      if (value === null || typeof value !== "object") return value;
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, convert(one, name)]));
    };
    const { traces, x, y, height, layout: { legend, ...more } } = convert(made);
    const rows = made.traces.flatMap((trace, n) => (trace.y ?? []).map((value, i) =>
      [trace.name ?? n, trace.x?.[i] ?? (trace.x0 ?? 0) + i, value, trace.base?.[i], trace.customdata?.[i], trace.hovertext?.[i]]));
    return {
      traces, layout: layout(height, axis(x.title, { ...x, title: { text: x.title, standoff: 12 } }),
        axis(y.title, { ...y, title: { text: y.title, standoff: 12 } }), { ...more, legend: { ...LEGEND, ...legend } }),
      columns: ["line", made.x.title, made.y.title, "base", "of", "on"], rows,
    };
  }

  return { DASHES, LEGEND, SYMBOLS, axis, data, drawAll, finite, folded, layout, plain, show, themed };
})();
