"use strict";
// Zoom into a box of the flame graph: it takes the whole width, its ancestors span it, all beside it is hidden.
for (const flame of document.querySelectorAll(".flame")) {
  const reset = flame.previousElementSibling;
  const boxes = [...flame.children].map((box) => ({
    box,
    left: parseFloat(box.style.left),
    width: parseFloat(box.style.width),
    top: parseFloat(box.style.top),
  }));
  const slack = 1e-3;

  function show(chosen) {
    reset.hidden = chosen === boxes[0];
    for (const one of boxes) {
      const above = one.top < chosen.top;
      const around = one.left <= chosen.left + slack && one.left + one.width >= chosen.left + chosen.width - slack;
      const inside = one.left >= chosen.left - slack && one.left + one.width <= chosen.left + chosen.width + slack;
      one.box.hidden = above ? !around : !inside;
      one.box.classList.toggle("above", above);
      const left = above ? 0 : ((one.left - chosen.left) / chosen.width) * 100;
      const width = above ? 100 : (one.width / chosen.width) * 100;
      one.box.style.left = `${left}%`;
      one.box.style.width = `${width}%`;
    }
  }

  for (const one of boxes) {
    one.box.addEventListener("click", () => show(one));
  }
  reset.addEventListener("click", () => show(boxes[0]));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(boxes[0]);
  });
}
