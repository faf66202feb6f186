"""The page's only script: it turns the strip of pictures into a player."""

from __future__ import annotations

SCRIPT = """
"use strict";
for (const player of document.querySelectorAll(".player")) {
  const pictures = [...player.querySelectorAll("img")];
  const [button, range, words] = ["button", "input", "output"].map((name) => player.querySelector(name));
  let shown = 0;
  let timer = null;

  function show(place) {
    shown = place;
    pictures.forEach((picture, index) => { picture.hidden = index !== place; });
    range.value = place;
    words.textContent = pictures[place].dataset.words;
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    button.textContent = shown === pictures.length - 1 ? "Play again" : "Play";
  }

  function play() {
    if (shown === pictures.length - 1) show(0);
    button.textContent = "Pause";
    timer = setInterval(() => {
      if (shown < pictures.length - 1) show(shown + 1);
      if (shown === pictures.length - 1) pause();
    }, Number(player.dataset.delay));
  }

  player.classList.add("ready");
  player.querySelector(".controls").hidden = false;
  button.addEventListener("click", () => (timer === null ? play() : pause()));
  range.addEventListener("input", () => {
    pause();
    show(Number(range.value));
    pause();
  });
  show(0);
  if (pictures.length > 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches) play();
  else pause();
}
"""
