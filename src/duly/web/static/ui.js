// The dashboard's only script: keeps pages fresh, closes what is open, keys, theme, completion, boxes. Nothing needs it.
"use strict";
(() => {
  const base = document.body.dataset.base;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const cookie = (name, value) => {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${value}; Path=${base}; SameSite=Strict; Max-Age=31536000${secure}`;
  };

  // On a phone the navigation scrolls: where one is should be in sight.
  $(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  // Theme
  const root = document.documentElement;
  const themeButton = $("[data-theme-button]");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (themeButton && base) {
    const say = () => (themeButton.textContent = isDark() ? "Light" : "Dark");
    themeButton.hidden = false;
    say();
    themeButton.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      $('meta[name="color-scheme"]').content = root.dataset.theme;
      cookie("duly_theme", root.dataset.theme);
      say();
      document.dispatchEvent(new CustomEvent("duly:theme"));
    });
  }

  // Make one tree like another in place, so that focus, scroll, what was typed and what is open stay.
  const keyOf = (node) => (node.nodeType === 1 ? node.id || node.dataset.row || "" : "");
  const kept = (node) =>
    node.nodeType === 1 && (node.hasAttribute("data-keep") || (node.matches("details.act") && node.open));
  const holds = (node) => kept(node) || (node.nodeType === 1 && $("details.act[open]", node) !== null);
  // What was said once, and is not in the fresh page, stays where it is.
  const said = (node) => node.nodeType === 1 && node.hasAttribute("data-said");
  const alike = (old, fresh) =>
    old.nodeName === fresh.nodeName && old.className === fresh.className && !keyOf(old) && !said(old);
  // Without a key: the next of its kind past what went away, but never past what stays. Else what stands here, remade.
  const unkeyed = (at, fresh, stays) => {
    for (let node = at; node; node = node.nextSibling) {
      if (alike(node, fresh)) return node;
      if (stays(node)) break;
    }
    return at && at.nodeName === fresh.nodeName && !keyOf(at) ? at : null;
  };
  const morph = (old, fresh) => {
    if (kept(old)) return;
    if (old.nodeType === 3) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.nodeType !== 1) return;
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && name !== "open" && name !== "data-drawn") old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (name === "open" || (name === "hidden" && old.hasAttribute("data-all"))) continue;
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.matches("input, textarea, select")) return;
    const keyed = new Map();
    for (const child of old.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
    const wanted = new Set([...fresh.childNodes].map(keyOf).filter(Boolean));
    const stays = (node) => wanted.has(keyOf(node)) || holds(node);
    let at = old.firstChild;
    const pass = () => {
      const passed = at;
      at = at.nextSibling;
      if (!said(passed) && !stays(passed)) passed.remove();
    };
    for (const next of [...fresh.childNodes]) {
      while (at && said(at)) at = at.nextSibling;
      const key = keyOf(next);
      let mine = key ? keyed.get(key) : unkeyed(at, next, stays);
      if (mine && mine.nodeName !== next.nodeName) mine = null;
      if (!mine) {
        old.insertBefore(document.importNode(next, true), at);
        continue;
      }
      if (!key) while (at !== mine) pass();
      if (mine !== at) old.insertBefore(mine, at);
      else at = at.nextSibling;
      morph(mine, next);
    }
    wanted.clear();
    while (at) pass();
  };

  // Live
  const main = $("#main");
  const stale = $("#stale");
  if (main && main.hasAttribute("data-live") && base) {
    const tools = $("[data-live-tools]");
    const button = $("[data-live-button]");
    const every = 2000;
    let on = sessionStorage.getItem("duly-live") !== "off";
    let errors = 0;
    let timer = 0;
    let busy = false;
    const show = () => {
      button.setAttribute("aria-pressed", String(on));
      button.textContent = on ? "Live" : "Paused";
    };
    const say = (text) => {
      stale.textContent = text;
      stale.hidden = !text;
    };
    const boxes = () => $$("input[type=checkbox]:checked", main).length > 0;
    const look = async () => {
      if (busy || document.hidden || !on || boxes() || document.getSelection()?.type === "Range") return plan();
      busy = true;
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error", cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("main");
        if (!fresh) throw new Error("no page");
        morph(main, fresh);
        const health = page.getElementById("health");
        if (health && $("#health")) morph($("#health"), health);
        document.dispatchEvent(new CustomEvent("duly:fresh"));
        errors = 0;
        say("");
      } catch {
        errors += 1;
        if (errors >= 3) {
          on = false;
          show();
          say("The server does not answer, or you are signed out: what you see is no longer updated.");
        }
      }
      busy = false;
      plan();
    };
    const plan = () => {
      clearTimeout(timer);
      if (on) timer = setTimeout(look, every * Math.min(8, 2 ** errors));
    };
    tools.hidden = false;
    show();
    plan();
    button.addEventListener("click", () => {
      on = !on;
      errors = 0;
      sessionStorage.setItem("duly-live", on ? "on" : "off");
      say("");
      show();
      if (on) look();
    });
    document.addEventListener("visibilitychange", () => document.hidden || look());
  }

  // Forms that are open: one at a time, closed by Escape and by a click elsewhere; the first field is focused.
  const openActs = () => $$("details.act[open]");
  document.addEventListener("toggle", (event) => {
    const act = event.target;
    if (!(act instanceof HTMLDetailsElement) || !act.matches("details.act") || !act.open) return;
    openActs().forEach((other) => other !== act && (other.open = false));
    // A form that would stand beside the page opens to the other side.
    act.classList.remove("flip");
    const { left, right } = $("form", act).getBoundingClientRect();
    act.classList.toggle("flip", left < 0 || right > root.clientWidth);
    $("input:not([type=hidden]), select, textarea", act)?.focus();
  }, true);
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && !event.target.closest("details.act")) openActs().forEach((act) => (act.open = false));
  });
  // A form is sent once, however often its button is pressed.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "1";
    setTimeout(() => delete form.dataset.sent, 5000);
  });
  addEventListener("pageshow", () => $$("form[data-sent]").forEach((form) => delete form.dataset.sent));

  // Keys
  const keys = $("#keys");
  const typing = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable]");
  let went = 0;
  if (base) {
    const button = $("[data-keys-button]");
    if (button && keys) {
      button.hidden = false;
      button.addEventListener("click", () => keys.showModal());
    }
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        const [act] = openActs();
        if (act) {
          act.open = false;
          $("summary", act).focus();
        }
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || keys?.open) return;
      if (event.key === "/" && $("[data-filter]")) {
        event.preventDefault();
        $("[data-filter]").focus();
      } else if (event.key === "?" && keys) keys.showModal();
      else if (event.key === "g") went = Date.now();
      else if (Date.now() - went < 1500) {
        went = 0;
        $(`.nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
      }
    });
  }

  // Boxes: one that ticks all of its form, and how many are ticked.
  const tally = (form) => {
    const all = $$("input[type=checkbox][data-box]", form);
    const ticked = all.filter((box) => box.checked).length;
    $$("[data-ticked]", form).forEach((place) => (place.textContent = ticked ? `${ticked} selected` : ""));
    const head = $("input[data-all]", form);
    if (head) {
      head.checked = ticked > 0 && ticked === all.length;
      head.indeterminate = ticked > 0 && ticked < all.length;
    }
  };
  document.addEventListener("change", (event) => {
    const box = event.target;
    const form = box instanceof HTMLInputElement ? box.form : null;
    if (!form || box.type !== "checkbox") return;
    if (box.hasAttribute("data-all")) $$("input[type=checkbox][data-box]", form).forEach((one) => (one.checked = box.checked));
    tally(form);
  });
  $$("input[data-all]").forEach((box) => {
    box.hidden = false;
    if (box.form) tally(box.form);
  });

  // Completion: a list below the filter, of what the server offers for the text before the caret.
  const filter = $("[data-filter][data-complete]");
  if (filter && base) {
    const list = document.createElement("ul");
    list.className = "options";
    list.id = "filter-options";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Completions");
    list.hidden = true;
    filter.parentElement.append(list);
    for (const [name, value] of Object.entries({ role: "combobox", "aria-controls": list.id, "aria-expanded": "false", "aria-autocomplete": "list" })) {
      filter.setAttribute(name, value);
    }
    let chosen = -1;
    let asked = 0;
    const close = () => {
      list.hidden = true;
      chosen = -1;
      filter.setAttribute("aria-expanded", "false");
      filter.removeAttribute("aria-activedescendant");
    };
    const take = (option) => {
      filter.value = option.dataset.text;
      filter.setSelectionRange(filter.value.length, filter.value.length);
      close();
      offer();
    };
    const mark = (at) => {
      const options = [...list.children];
      chosen = options.length ? (at + options.length) % options.length : -1;
      options.forEach((option, index) => option.setAttribute("aria-selected", String(index === chosen)));
      if (chosen >= 0) {
        filter.setAttribute("aria-activedescendant", options[chosen].id);
        options[chosen].scrollIntoView({ block: "nearest" });
      }
    };
    const offer = async () => {
      const mine = ++asked;
      const before = filter.value.slice(0, filter.selectionStart ?? filter.value.length);
      const after = filter.value.slice(before.length);
      try {
        const answer = await fetch(`${base}/complete?q=${encodeURIComponent(before)}`, { redirect: "error" });
        const { options } = await answer.json();
        if (mine !== asked || document.activeElement !== filter) return;
        list.replaceChildren(
          ...options.map(({ text, shown, note }, index) => {
            const option = document.createElement("li");
            option.id = `filter-option-${index}`;
            option.setAttribute("role", "option");
            option.setAttribute("aria-selected", "false");
            option.dataset.text = text + after;
            option.textContent = shown;
            if (note) {
              const small = document.createElement("small");
              small.textContent = note;
              option.append(small);
            }
            option.addEventListener("mousedown", (event) => {
              event.preventDefault();
              take(option);
            });
            return option;
          }),
        );
        list.hidden = !options.length;
        filter.setAttribute("aria-expanded", String(!list.hidden));
        chosen = -1;
      } catch {
        close();
      }
    };
    let timer = 0;
    filter.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(offer, 120);
    });
    filter.addEventListener("focus", offer);
    filter.addEventListener("blur", close);
    filter.addEventListener("keydown", (event) => {
      if (list.hidden) return;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        mark(event.key === "ArrowDown" ? chosen + 1 : chosen < 0 ? -1 : chosen - 1);
      } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
        event.preventDefault();
        take(list.children[chosen]);
      } else if (event.key === "Escape") {
        // The list is closed; what was typed stays.
        event.preventDefault();
        event.stopPropagation();
        close();
      }
    });
  }

  // Charts: uPlot over the server's own drawing, where the page brings it.
  const plots = new Map();
  const draw = () => {
    if (!window.uPlot) return;
    $$("figure[data-chart]").forEach((figure) => {
      const place = $("[data-plot]", figure);
      const data = JSON.parse(figure.dataset.chart);
      const known = plots.get(place);
      if (known) return known.setData(data);
      const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
      const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
      const colors = [color("--accent"), color("--warn"), color("--bad")];
      figure.dataset.drawn = "";
      const options = {
        width: place.clientWidth || 300,
        height: 190,
        cursor: { y: false },
        scales: { y: { range: (_, low, high) => [0, Math.max(1, high)] } },
        axes: [axis, { ...axis, size: 48 }],
        series: [{}, ...figure.dataset.lines.split(",").map((label, index) => ({ label, stroke: colors[index], width: 1.5, points: { show: false } }))],
      };
      plots.set(place, new uPlot(options, data, place));
    });
  };
  const redraw = () => {
    plots.forEach((plot) => plot.destroy());
    plots.clear();
    draw();
  };
  draw();
  document.addEventListener("duly:fresh", draw);
  document.addEventListener("duly:theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(redraw, 150);
  });
})();
