"use strict";
// Asks for the page again and again, and swaps what has changed; the figures are drawn anew.
(() => {
  const PAUSE = 2000; // milliseconds between two looks
  const PATIENCE = 30000; // milliseconds after which an answer is given up
  const WORDS = ["above", "cards", "below"];
  const link = document.getElementById("link");
  const lost = document.getElementById("lost");
  let asked = false;
  let seen = Date.now(); // when the page last showed the study as it stood

  const duration = (seconds) => {
    if (seconds < 120) return `${Math.round(seconds)} s`;
    return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
  };
  const tick = () => {
    const now = lost.hidden ? Date.now() : seen; // of a study that is not seen, no time passes
    for (const time of document.querySelectorAll("time[data-began]")) {
      time.textContent = duration(Math.max(0, now / 1000 - time.dataset.began));
    }
  };

  // Says on top why the page is old, or nothing where it is not.
  const say = (reason) => {
    const words = reason
      && `${reason} This page shows the study as it was at ${new Date(seen).toLocaleString()}.`;
    if (lost.textContent !== words) lost.textContent = words;
    lost.hidden = !reason;
    link.textContent = reason ? "" : "This page renews itself.";
    document.body.classList.toggle("old", !lost.hidden);
    tick();
  };

  // A figure keeps its box, and with it what a reader has zoomed into.
  const rename = (place, fresh) => {
    for (const part of ["h2", ".note"]) {
      place.querySelector(part).replaceWith(fresh.querySelector(part));
    }
    const label = fresh.querySelector(".drawing").getAttribute("aria-label");
    place.querySelector(".drawing").setAttribute("aria-label", label);
  };
  const swap = (fresh) => {
    for (const id of WORDS) document.getElementById(id).replaceWith(fresh.getElementById(id));
    document.title = fresh.title;
    document.body.className = fresh.body.className;
    document.getElementById("page").textContent = fresh.getElementById("page").textContent;
    const places = document.getElementById("figures");
    const others = fresh.getElementById("figures");
    if (places.childElementCount !== others.childElementCount) places.replaceWith(others);
    else [...places.children].forEach((place, i) => rename(place, others.children[i]));
    document.body.dataset.version = fresh.body.dataset.version;
    document.dispatchEvent(new Event("renewed"));
  };

  // Asks for the page, and returns why it could not be renewed, an empty text where it was.
  const renew = async () => {
    const answer = await fetch(location.pathname, {
      cache: "no-store",
      headers: { "If-None-Match": `"${document.body.dataset.version}"` },
      signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.status !== 304) {
      const text = await answer.text();
      if (answer.status === 503) return text; // the study cannot be read
      if (!answer.ok) throw new Error(text);
      swap(new DOMParser().parseFromString(text, "text/html"));
    }
    seen = Date.now();
    return "";
  };

  const look = async () => {
    if (asked || document.hidden) return;
    asked = true;
    say(await renew().catch(() => "The server of this page does not answer."));
    asked = false;
  };

  document.addEventListener("visibilitychange", look);
  setInterval(look, PAUSE);
  setInterval(tick, 1000);
  say("");
})();
