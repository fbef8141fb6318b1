// The curves of scenarios; report.js draws them together with the pictures of single runs.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const COLOURS = ["#2f7fd6", "#d97706", "#0f9d76", "#c04aa0", "#5b5fd0", "#d0453f", "#7ba01d",
    "#1fa9c4", "#8a8f98", "#b58a2a"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];

  plots.makers.curve = (figure) => {
    const made = data.curve[figure.dataset.name];
    return curves.draw(made, figure, (line) => {
      const index = made.lines.indexOf(line);
      return {
        colour: line.dash ? plots.theme().soft : COLOURS[index % COLOURS.length], width: 2, size: 7,
        symbol: SYMBOLS[index % SYMBOLS.length],
      };
    });
  };
})();
