// Sends the picture with a bar, and goes on to its ticket. The form works without it.
"use strict";
(() => {
  const form = document.getElementById("upload");
  if (!form) return;
  const field = document.getElementById("photo");
  const bar = document.getElementById("sent");
  const said = document.getElementById("said");
  const button = form.querySelector("button");

  function tell(text) {
    said.textContent = text;
    bar.hidden = true;
    button.disabled = false;
  }

  function answered(request) {
    let told = {};
    try {
      told = JSON.parse(request.responseText);
    } catch {
      // Not ours: a proxy's page. The status says enough.
    }
    if (request.status === 202 && told.ticket_url) {
      said.textContent = "Taken.";
      window.location.assign(told.ticket_url);
      return;
    }
    const detail = told.detail ? `: ${told.detail}` : "";
    tell(told.title ? `${told.title}${detail}.` : `It was not taken (${request.status}). Please try again.`);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const file = field.files[0];
    if (!file) return;
    const most = Number(form.dataset.most);
    if (file.size > most) {
      tell(`This picture is too large: at most ${Math.floor(most / 1048576)} MB are taken.`);
      return;
    }
    const request = new XMLHttpRequest();
    request.open("POST", `${form.getAttribute("action")}?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
    request.upload.addEventListener("progress", (sent) => {
      if (sent.lengthComputable) bar.value = (100 * sent.loaded) / sent.total;
    });
    request.addEventListener("load", () => answered(request));
    request.addEventListener("error", () => tell("The site did not answer. Please try again."));
    button.disabled = true;
    bar.value = 0;
    bar.hidden = false;
    said.textContent = "Sending.";
    request.send(file);
  });

  // Back from the ticket, the browser may show the page as it was left.
  window.addEventListener("pageshow", () => tell(""));
})();
