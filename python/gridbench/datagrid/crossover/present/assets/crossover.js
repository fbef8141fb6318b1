// Draws the pictures of the crossover; numbers come with their units.
"use strict";
(() => {
  const { DASHES, SYMBOLS, data, drawAll, engineColour, show } = plots;

  // Data grids have colours that none of the compute grids has.
  const isOfGrid = (name) => data.grids.some((grid) => name === grid || name === `${grid}, there already`);
  const taken = Object.keys(data.colours.engines).filter((name) => !isOfGrid(name)).map(engineColour);
  const free = data.colours.series.filter((colour) => !taken.includes(colour));
  const colourOf = (name) => isOfGrid(name)
    ? free[data.grids.indexOf(name.replace(/, there already$/, "")) % free.length] : engineColour(name);

  // A line and what is predicted for it stand side by side in the data.
  const styled = (line) => {
    const number = Math.floor(line.index / 2);
    const there = line.engine.endsWith(", there already");
    return {
      colour: colourOf(line.engine), width: line.dash ? 1.4 : 2, size: 7, dash: DASHES[there ? 2 : 0],
      symbol: SYMBOLS[number % SYMBOLS.length],
    };
  };
  const draw = (figure) => {
    const { name } = figure.dataset;
    const made = data.curve[name];
    return show(figure, () => made ? curves.draw(made, figure, styled) : null,
      `gridbench-crossover-${name}`, "Nothing to draw: there are no two sizes or numbers of readers to compare.");
  };
  for (const chosen of document.querySelectorAll("select[data-for]")) {
    const figure = document.querySelector(`#${chosen.dataset.for} [data-chart]`);
    chosen.value = figure.dataset.name;
    chosen.addEventListener("change", () => {
      figure.dataset.name = chosen.value;
      draw(figure);
    });
  }
  drawAll(draw);
})();
