// Keeps a ticket's page up to date, and shows its times in the reader's own zone. The page works without it.
"use strict";
(() => {
  const place = document.getElementById("status");
  if (!place) return;
  const spoken = document.getElementById("spoken");
  const title = document.querySelector("h1").textContent;
  let tries = 0;

  function localise() {
    for (const time of place.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      const today = moment.toDateString() === new Date().toDateString();
      const form = today ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" };
      time.textContent = moment.toLocaleString(undefined, form);
    }
  }

  function show(told) {
    // The server has escaped every text in it.
    place.innerHTML = told.html;
    document.title = `${title}: ${told.heading}`;
    // Only a new state is read out, not each step of a progress.
    if (spoken.textContent !== told.heading) spoken.textContent = told.heading;
    localise();
  }

  function listen() {
    const source = new EventSource(place.dataset.events);
    source.addEventListener("status", (event) => {
      tries = 0;
      const told = JSON.parse(event.data);
      show(told);
      if (told.ended) source.close();
    });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return;
      tries += 1;
      window.setTimeout(listen, Math.min(60, 2 ** tries) * 1000);
    });
  }

  localise();
  if (place.dataset.events && !place.dataset.ended) listen();
})();
