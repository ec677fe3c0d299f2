// The answering page: what is typed is kept in this browser too, keys, the raw view, and the time a question stays with you.
"use strict";
(() => {
  const form = () => document.getElementById("answer-form");
  const typing = (target) => target.closest("input:not([type=radio], [type=checkbox]), textarea, select") !== null;

  // Kept text. It outlives a reload, an ended session and a lost network; the server's word that it has the answer removes it.
  function typed() {
    const data = new FormData(form());
    return { answer: data.get("answer") ?? "", unsure: data.has("unsure"), note: data.get("note") ?? "" };
  }
  function keep() {
    try {
      localStorage.setItem(form().dataset.keep, JSON.stringify({ ...typed(), at: new Date().toISOString() }));
    } catch {
      // A full or forbidden store: the server's draft is still there.
    }
  }
  function restore() {
    const kept = JSON.parse(localStorage.getItem(form().dataset.keep) ?? "null");
    if (!kept || (form().dataset.savedAt && kept.at <= new Date(form().dataset.savedAt).toISOString())) return;
    const now = typed();
    if (kept.answer === now.answer && kept.unsure === now.unsure && kept.note === now.note) return;
    const answer = form().elements.answer;
    if (answer) answer.value = kept.answer; // of radios this checks the one with that value
    form().elements.unsure.checked = kept.unsure;
    form().elements.note.value = kept.note;
    if (kept.note) form().elements.note.closest("details").open = true;
    const field = document.querySelector("#answer-field input");
    field?.dispatchEvent(new Event("input", { bubbles: true }));
    document.getElementById("restored").hidden = false;
  }
  function sayUnsaved(text) {
    const line = document.getElementById("draft-status");
    line.classList.add("offline");
    line.textContent = text;
  }

  document.addEventListener("input", (event) => {
    if (event.target.closest("#answer-form")) keep();
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (event.detail.elt.id === "draft-status") sayUnsaved("Offline – kept on this device");
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.elt.id === "draft-status") sayUnsaved("Not saved on the server – kept on this device");
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "draft-status") event.detail.target.classList.remove("offline");
  });
  window.addEventListener("online", () => saveNow());
  document.addEventListener("visibilitychange", () => {
    const line = document.getElementById("draft-status");
    if (!document.hidden && line.classList.contains("offline")) saveNow();
  });
  function saveNow() {
    htmx.trigger("#draft-status", "save");
  }

  // Keys: never single ones while typing, and they can be turned off.
  const singleKeys = () => localStorage.getItem("assay-single-keys") !== "off";
  const open = (id) => {
    const fold = document.getElementById(id);
    if (!fold) return;
    fold.open = !fold.open;
    fold.querySelector("summary").focus();
  };
  const actions = {
    "/": () => document.querySelector("#answer-field input")?.focus(),
    i: () => document.querySelector("#answer-field input")?.focus(),
    s: () => document.getElementById("skip-form").requestSubmit(),
    u: () => open("unanswerable"),
    g: () => open("guideline"),
    r: () => show(document.querySelector("[data-view=raw]").hidden ? "raw" : "rendered"),
    "?": () => open("keys"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      if (!form().classList.contains("htmx-request")) form().requestSubmit();
    } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      saveNow();
    } else if (event.key === "Escape" && typing(event.target)) {
      event.target.blur();
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target) && singleKeys() && actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    } else if (event.key === "Enter" && event.target.matches("#answer-field input[type=text]")) {
      event.preventDefault(); // a stray Enter is not an answer
    }
  });

  function show(view) {
    document.querySelectorAll("[data-view]").forEach((node) => (node.hidden = node.dataset.view !== view));
    document.querySelectorAll("[data-show]").forEach((button) => {
      if (button.matches("button")) button.setAttribute("aria-pressed", String(button.dataset.show === view));
    });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-show]");
    if (button) show(button.dataset.show);
    if (event.target.closest("[data-extend]")) saveNow();
  });

  // The lease: said only in its last five minutes.
  function tellTime() {
    const mark = document.querySelector("[data-lease-until]");
    const warning = document.getElementById("lease-warning");
    if (!mark || !warning) return;
    const seconds = (new Date(mark.dataset.leaseUntil) - Date.now()) / 1000;
    warning.hidden = seconds > 300;
    const left = warning.querySelector("[data-lease-left]");
    const text = seconds > 60 ? `${Math.ceil(seconds / 60)} minutes` : seconds > 0 ? "less than a minute" : "now only until somebody else takes it";
    if (left.textContent !== text) left.textContent = text;
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelector("[data-toggle-raw]").hidden = false;
    const box = document.querySelector("[data-single-keys]");
    box.checked = singleKeys();
    box.addEventListener("change", () => localStorage.setItem("assay-single-keys", box.checked ? "on" : "off"));
    restore();
    tellTime();
    setInterval(tellTime, 10_000);
    if (matchMedia("(min-width: 48rem)").matches) document.querySelector("#answer-field input[type=text]")?.focus();
  });
})();
