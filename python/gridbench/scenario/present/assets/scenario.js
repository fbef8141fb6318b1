// The curves of scenarios; report.js draws them together with the pictures of single runs.
"use strict";
plots.makers.curve = (figure) => {
  const { DASHES, SYMBOLS, data, engineColour, theme } = plots;
  return curves.draw(data.curve[figure.dataset.name], figure, (line) => ({
    colour: line.dash ? theme().soft : engineColour(line.engine), width: 2, size: 7,
    dash: DASHES[line.variant % DASHES.length], symbol: SYMBOLS[line.variant % SYMBOLS.length],
  }));
};
