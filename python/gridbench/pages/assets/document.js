// Draws all charts of a document, and lets the reader choose where several stand in one place.
"use strict";
(() => {
  const { data, drawAll, folded, show, themed } = plots;

  const draw = (figure) => {
    const { chart, name } = figure.dataset;
    const made = data.charts[name];
    if (folded(figure)) return figure.replaceChildren();
    return show(figure, chart === "curve" ? curves.draw(made, figure) : themed(made), `${data.file}-${name}`);
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
