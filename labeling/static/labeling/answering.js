// The answering page: what is typed is kept on this device too, keys, the raw view, undoing, and how long a question stays.
"use strict";
(() => {
  const form = () => document.getElementById("answer-form");
  const status = () => document.getElementById("draft-status");
  const isTyping = (target) => target.closest("input:not([type=radio], [type=checkbox]), textarea, select") !== null;

  // What is typed. The copy on this device is marked as saved once the server has exactly that; until then it is the
  // newest there is and comes back after a reload. The server's word that it has the answer removes it.
  const NOT_TYPED = new Set(["csrfmiddlewaretoken", "idempotency_key", "flag_key", "slot", "warned", "confirm_unreadable"]);
  function typed() {
    const fields = {};
    for (const field of form().elements) {
      if (!field.name || NOT_TYPED.has(field.name) || field.type === "submit") continue;
      if (field.type === "checkbox") fields[field.name] = field.checked;
      else if (field.type !== "radio") fields[field.name] = field.value;
      else if (field.checked) fields[field.name] = field.value;
    }
    return fields;
  }
  function put(fields) {
    for (const [name, value] of Object.entries(fields)) {
      const field = form().elements[name];
      if (!field) continue;
      if (field.type === "checkbox") field.checked = value;
      else field.value = value; // of radios this checks the one with that value
      if (value && value !== true) field.closest?.("details")?.setAttribute("open", "");
    }
    document.querySelector("#answer-field input")?.dispatchEvent(new Event("input", { bubbles: true }));
  }
  function store(copy) {
    try {
      localStorage.setItem(form().dataset.keep, JSON.stringify(copy));
    } catch {
      // A full or forbidden store: the server's draft is still there.
    }
  }
  const stored = () => JSON.parse(localStorage.getItem(form().dataset.keep) ?? "null");
  const keep = () => store({ typed: typed(), saved: false });
  let before = null; // what the server had when this device's copy was put in its place
  function restore() {
    const copy = stored();
    if (!copy || copy.saved) return;
    const now = typed();
    if (JSON.stringify({ ...now, ...copy.typed }) === JSON.stringify(now)) return;
    before = now;
    put(copy.typed);
    document.getElementById("restored").hidden = false;
  }
  function forgetAnswered() {
    for (const node of document.querySelectorAll("[data-answered]")) localStorage.removeItem(node.dataset.answered);
  }

  // Saving.
  let sent = "";
  function sayUnsaved(text, more) {
    status().classList.add("offline");
    status().replaceChildren(text, ...(more ? [" ", more] : []));
  }
  function saveNow() {
    if (form()) htmx.trigger("#draft-status", "save");
  }
  function logInButton() {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "small", textContent: gettext("Log in") });
    button.dataset.logIn = "";
    return button;
  }
  const isSaving = (event) => event.detail.elt?.id === "draft-status";
  document.addEventListener("htmx:configRequest", (event) => {
    if (isSaving(event)) sent = JSON.stringify(typed());
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (isSaving(event)) sayUnsaved(gettext("Offline – kept on this device"));
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (!isSaving(event)) return;
    if (event.detail.xhr.status === 401) sayUnsaved(gettext("Logged out – kept on this device"), logInButton());
    else sayUnsaved(gettext("Not saved on the server – kept on this device"));
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "draft-status") return;
    event.detail.target.classList.remove("offline");
    if (form() && JSON.stringify(typed()) === sent) store({ typed: JSON.parse(sent), saved: true });
    tellLease(true);
  });
  const retry = () => status()?.classList.contains("offline") && !document.hidden && saveNow();
  setInterval(retry, 5_000);
  window.addEventListener("online", retry);
  document.addEventListener("visibilitychange", retry);
  document.addEventListener("logged-in-again", saveNow);
  window.addEventListener("pagehide", () => {
    if (!form() || stored()?.saved !== false) return;
    fetch(status().getAttribute("hx-post"), { method: "POST", body: new FormData(form()), keepalive: true, headers: { "HX-Request": "true" } }).catch(() => {});
  });
  document.addEventListener("input", (event) => {
    if (event.target.closest("#answer-form")) keep();
    if (!event.target.closest("#answer-field")) return;
    document.querySelectorAll("[data-until-typed]").forEach((node) => node.remove()); // was about another answer
  });
  // Another tab with the same question: the one in the background follows.
  window.addEventListener("storage", (event) => {
    if (!form() || event.key !== form().dataset.keep || !document.hidden) return;
    if (event.newValue === null) sayUnsaved(gettext("Answered in another tab"));
    else put(JSON.parse(event.newValue).typed);
  });

  // Keys: never single ones while typing, and they can be turned off.
  const singleKeys = () => localStorage.getItem("assay-single-keys") !== "off";
  const answerField = () => document.querySelector("#answer-field input:checked") ?? document.querySelector("#answer-field input");
  function open(id) {
    const fold = document.getElementById(id);
    if (!fold || fold.hidden) return;
    if (fold.open) return close(fold);
    fold.open = true;
    (fold.querySelector(".drawer-body") ?? fold.querySelector("select, textarea")).focus();
  }
  function close(fold) {
    fold.open = false;
    fold.querySelector("summary").focus();
  }
  const actions = {
    "/": () => answerField()?.focus(),
    i: () => answerField()?.focus(),
    u: () => open("unanswerable"),
    f: () => open("flag"),
    g: () => open("guideline"),
    r: () => show(document.getElementById("question-raw")?.hidden ? "raw" : "rendered"),
    "?": () => open("keys"),
  };
  function press(key) {
    const button = [...document.querySelectorAll("#work [data-key]")].find((each) => each.dataset.key === key);
    button?.click();
    return button !== undefined;
  }
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || !document.getElementById("work") || document.querySelector("dialog[open]")) return;
    const withControl = event.ctrlKey || event.metaKey;
    const alone = !withControl && !event.altKey;
    if (withControl && event.key === "Enter" && form()) {
      event.preventDefault();
      if (form().classList.contains("htmx-request")) return;
      const part = event.target.closest("[data-part][open]") ?? form();
      part.querySelector(part === form() ? "button.primary" : "button[type=submit]").click();
    } else if (withControl && event.key.toLowerCase() === "s") {
      event.preventDefault();
      saveNow();
    } else if (event.key === "Escape" && alone) {
      const drawer = document.querySelector(".drawer[open]");
      if (drawer && (!isTyping(event.target) || drawer.contains(event.target))) close(drawer);
      else if (isTyping(event.target)) event.target.blur();
    } else if (event.key === "Enter" && event.target.matches("#answer-form input[type=text]")) {
      event.preventDefault(); // a stray Enter is not an answer
    } else if (alone && !isTyping(event.target) && singleKeys()) {
      if (actions[event.key]) {
        event.preventDefault();
        actions[event.key]();
      } else if (press(event.key)) {
        event.preventDefault();
      } else if (/^[0-9\\({.$+-]$/.test(event.key) && answerField()?.type === "text") {
        answerField().focus(); // whoever starts to write an answer gets it into its field
      }
    }
  });

  function show(view) {
    document.querySelectorAll("[data-view]").forEach((node) => (node.hidden = node.dataset.view !== view));
    document.querySelectorAll("button[data-show]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.show === view)));
  }
  document.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest(selector);
    const button = on("button[data-show]");
    if (button) show(button.dataset.show);
    if (on("[data-extend]")) saveNow();
    if (on("[data-use-saved]") && before) {
      const now = typed();
      put(before);
      before = now; // pressed again, it brings the other one back
    }
    const drawer = document.querySelector(".drawer[open]");
    if (drawer && !drawer.contains(event.target)) drawer.open = false;
  });

  // The lease is told only in its last five minutes, undoing for as long as it is possible. Counted from when the
  // server said how long, since its clock and this one may differ.
  let leaseEnd = null;
  function tellLease(anew) {
    const warning = document.getElementById("lease-warning");
    const mark = document.querySelector("[data-lease-seconds]");
    if (!warning) return;
    if (anew) leaseEnd = mark ? performance.now() + 1000 * mark.dataset.leaseSeconds : null;
    const seconds = leaseEnd === null ? Infinity : (leaseEnd - performance.now()) / 1000;
    warning.hidden = seconds > 300;
    if (warning.hidden) return;
    const left = warning.querySelector("[data-lease-left]");
    const minutes = Math.ceil(seconds / 60);
    const more = interpolate(ngettext("%s more minute", "%s more minutes", minutes), [minutes]);
    const text = seconds > 60 ? more : seconds > 0 ? gettext("less than a minute") : gettext("as long as nobody else takes it");
    if (left.textContent !== text) left.textContent = text;
  }
  let undoEnd = null;
  function tellUndo(anew) {
    const toast = document.querySelector("[data-undo]");
    if (!toast) return;
    if (anew) undoEnd = performance.now() + 1000 * toast.dataset.seconds;
    const seconds = Math.ceil((undoEnd - performance.now()) / 1000);
    toast.querySelector("[data-seconds-left]").textContent = `(${Math.max(0, seconds)} s)`;
    if (seconds <= 0 && !toast.contains(document.activeElement)) toast.remove();
  }
  setInterval(() => (tellLease(false), tellUndo(false)), 1_000);

  function begin() {
    if (!document.getElementById("work")) return;
    document.querySelectorAll("[data-needs-script]").forEach((node) => (node.hidden = false));
    for (const box of document.querySelectorAll("[data-single-keys]")) box.checked = singleKeys();
    form()?.setAttribute("autocomplete", "off"); // here the page restores what was typed; without a script the browser does
    before = null;
    forgetAnswered();
    if (form()) restore();
    tellLease(true);
    tellUndo(true);
  }
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-single-keys]")) localStorage.setItem("assay-single-keys", event.target.checked ? "on" : "off");
  });
  document.addEventListener("DOMContentLoaded", () => {
    begin();
    if (!location.hash) document.getElementById("question-heading")?.focus({ preventScroll: true });
  });
  let isUntouched = false; // since the question came: whoever types on at once keeps the focus
  document.addEventListener("keydown", () => (isUntouched = false), true);
  const toHeading = () => document.getElementById("question-heading")?.focus({ preventScroll: true });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id === "work" && isUntouched) toHeading();
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "work") {
      isUntouched = true;
      begin();
      toHeading();
    } else if (event.target.id === "answer-form") {
      begin();
      (event.target.querySelector("[aria-invalid=true]") ?? event.target.querySelector("[name=confirm_unreadable], [role=alert]"))?.focus();
    }
  });
})();
