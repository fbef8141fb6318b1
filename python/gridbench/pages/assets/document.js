// Draws all charts of a document, and lets the reader choose where several stand in one place.
"use strict";
(() => {
  const { data, drawAll, makers, show, themed } = plots;

  makers.curve ??= (made, figure) => curves.draw(made, figure);
  makers.figure ??= (made) => themed(made);

  const draw = (figure) => {
    const { chart, name = chart, run } = figure.dataset;
    const part = run ? `-${Number(run) + 1}` : "";
    const made = data.charts[name];
    return show(figure, () => makers[chart](made, figure), `${data.file}-${name}${part}`, "Nothing to draw: too little was measured.");
  };
  for (const chosen of document.querySelectorAll("select[data-choice]")) {
    const figure = chosen.closest("div").querySelector("[data-chart]");
    chosen.value = figure.dataset.name;
    chosen.addEventListener("change", () => {
      figure.dataset.name = chosen.value;
      draw(figure);
      // Choices of the same, such as several charts of one case, change together.
      for (const other of document.querySelectorAll("select[data-choice]")) {
        const alike = other.dataset.choice === chosen.dataset.choice && other.options.length === chosen.options.length;
        if (alike && other.selectedIndex !== chosen.selectedIndex) {
          other.selectedIndex = chosen.selectedIndex;
          other.dispatchEvent(new Event("change"));
        }
      }
    });
  }
  drawAll(draw);
})();
