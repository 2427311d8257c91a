"use strict";
// Asks for the page again and again, and swaps what has changed; the figures are drawn anew.
(() => {
  const PAUSE = 2000; // milliseconds between two looks
  const PATIENCE = 30000; // milliseconds after which an answer is given up
  const WORDS = ["above", "cards", "below"];
  const link = document.getElementById("link");
  let asked = false;

  const say = (words, lost) => {
    if (link.textContent !== words) link.textContent = words;
    link.classList.toggle("lost", lost);
  };

  const duration = (seconds) => {
    if (seconds < 120) return `${Math.round(seconds)} s`;
    return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
  };
  const tick = () => {
    for (const time of document.querySelectorAll("time[data-began]")) {
      time.textContent = duration(Math.max(0, Date.now() / 1000 - time.dataset.began));
    }
  };

  const swap = (fresh) => {
    for (const id of WORDS) document.getElementById(id).replaceWith(fresh.getElementById(id));
    document.title = fresh.title;
    document.body.className = fresh.body.className;
    document.getElementById("page").textContent = fresh.getElementById("page").textContent;
    const places = document.getElementById("figures");
    const new_places = fresh.getElementById("figures");
    if (places.childElementCount !== new_places.childElementCount) places.replaceWith(new_places);
    document.body.dataset.version = fresh.body.dataset.version;
    tick();
    document.dispatchEvent(new Event("renewed"));
  };

  const renew = async () => {
    const answer = await fetch(location.pathname, {
      cache: "no-store",
      headers: { "If-None-Match": `"${document.body.dataset.version}"` },
      signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.status !== 304) {
      const text = await answer.text();
      if (!answer.ok) throw new Error(text);
      swap(new DOMParser().parseFromString(text, "text/html"));
    }
    say("This page renews itself.", false);
  };

  const look = async () => {
    if (asked || document.hidden) return;
    asked = true;
    try {
      await renew();
    } catch (error) {
      const reason = error instanceof TypeError ? "Its server does not answer." : error.message;
      say(`This page does not renew itself at the moment: ${reason}`, true);
    }
    asked = false;
  };

  document.addEventListener("visibilitychange", look);
  setInterval(look, PAUSE);
  setInterval(tick, 1000);
  tick();
  say("This page renews itself.", false);
})();
