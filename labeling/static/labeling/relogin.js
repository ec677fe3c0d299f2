// A session that ends while somebody works: they log in over the page, and what they had sent is sent again, as it was.
"use strict";
(() => {
  let waiting = null; // the button, or the form, whose request was refused
  let submitter = null;
  document.addEventListener("submit", (event) => (submitter = event.submitter), true);

  const dialog = () => document.getElementById("log-in-again");
  function makeDialog() {
    const made = document.createElement("dialog");
    made.id = "log-in-again";
    made.className = "panel";
    made.setAttribute("aria-labelledby", "log-in-again-heading");
    document.body.append(made);
    return made;
  }
  async function ask() {
    const box = dialog() ?? makeDialog();
    if (box.open) return;
    await htmx.ajax("GET", document.body.dataset.login, { source: document.body, target: box, swap: "innerHTML" });
    if (box.childElementCount === 0) return; // no connection: said by whoever says so on every page
    box.showModal();
    box.querySelector("input:not([type=hidden])")?.focus();
  }
  document.addEventListener("reauth", (event) => {
    if (!event.target.matches("form")) return;
    waiting = submitter?.form === event.target ? submitter : event.target;
    ask();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-log-in]")) {
      waiting = null;
      ask();
    } else if (event.target.closest("[data-cancel-login]")) {
      dialog().close();
    } else if (event.target.closest("[data-logged-in-elsewhere]")) {
      goOn();
    }
  });
  function goOn() {
    dialog().close();
    const again = waiting;
    waiting = null;
    document.dispatchEvent(new Event("logged-in-again"));
    if (again instanceof HTMLFormElement) again.requestSubmit();
    else again?.click();
  }
  document.addEventListener("logged-in", (event) => {
    if (String(event.detail.user) === document.body.dataset.user) goOn();
    else location.assign("/"); // somebody else: this page is not theirs
  });
})();
