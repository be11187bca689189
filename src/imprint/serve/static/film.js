/** Hold a button, by finger or by key, and the camera fills a class. */

import { h, note, speak } from "./dom.js";
import { frame, release, watch } from "./camera.js";

const PAUSE = 180; // milliseconds between two images

/** Every `.hold` button below `container` films into the class of its column while it is held. */
export function holdToFilm(container, addFiles) {
  let held = null;

  async function start(button) {
    if (held) return;
    const film = { on: true };
    held = film;
    const card = button.closest("[data-label]");
    const label = card.dataset.label;
    try {
      const video = await watch();
      video.className = "film";
      card.querySelector(".film-place").append(video, h("p", { class: "recording" }, "Filming …"));
      speak(`Filming ${label}.`);
      const group = crypto.randomUUID();
      const jobs = [];
      do {
        jobs.push(addFiles([await frame(video)], label, group));
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      } while (film.on);
      release(video);
      await Promise.all(jobs);
      video.closest(".film-place")?.replaceChildren();
    } catch (error) {
      note(error.message, "error");
    }
    if (held === film) held = null;
  }

  const stop = () => { if (held) held.on = false; };
  container.addEventListener("pointerdown", (event) => {
    const button = event.target.closest(".hold");
    if (button) start(button);
  });
  for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, stop);
  container.addEventListener("keydown", (event) => {
    const button = event.target.closest(".hold");
    if (button && [" ", "Enter"].includes(event.key)) { event.preventDefault(); if (!event.repeat) start(button); }
  });
  addEventListener("keyup", (event) => { if ([" ", "Enter"].includes(event.key)) stop(); });
}
