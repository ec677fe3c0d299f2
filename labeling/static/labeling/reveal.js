// After one's own answer: keys that pick one of the answers shown, outside the fields only.
"use strict";
(() => {
  const form = () => document.getElementById("reveal-form");
  const isField = (target) => target.closest("input:not([type=radio], [type=checkbox]), textarea, select") !== null;
  const singleKeys = () => localStorage.getItem("assay-single-keys") !== "off";

  function pick(radio) {
    if (!radio) return;
    radio.checked = true;
    radio.focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || !form()) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      if (!form().classList.contains("htmx-request")) form().requestSubmit();
    } else if (event.key === "Escape" && isField(event.target)) {
      event.target.blur();
    } else if (event.key === "Enter" && isField(event.target)) {
      event.preventDefault(); // a stray Enter decides nothing
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !isField(event.target) && singleKeys()) {
      if (event.key >= "1" && event.key <= "9") pick(form().querySelector(`[data-key="${event.key}"]`));
      else if (event.key === "k") pick(document.getElementById("keep"));
      else if (event.key === "/" || event.key === "i") {
        event.preventDefault();
        form().elements.answer.focus();
      }
    }
  });
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("reveal-heading").focus();
    for (const node of document.querySelectorAll("[data-answered]")) localStorage.removeItem(node.dataset.answered); // the server has it
  });
})();
