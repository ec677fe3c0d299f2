// Typesets maths with KaTeX: on load, and in whatever htmx brings. Untrusted input: no trust, bounded size and expansion.
"use strict";
(() => {
  const options = {
    trust: false,
    throwOnError: false,
    maxSize: 20,
    maxExpand: 1000,
    strict: "warn",
    output: "htmlAndMathml",
    errorColor: "var(--danger)",
  };

  function typeset(node) {
    if (node.dataset.done) return;
    node.dataset.done = "1";
    const source = node.textContent;
    const tex = node.dataset.tex ?? source;
    try {
      katex.render(tex, node, { ...options, displayMode: node.classList.contains("block") });
      if (!node.querySelector(".katex-error")) return;
    } catch {
      // Worse than a spelling mistake, for instance nested too deeply.
    }
    node.textContent = source; // never KaTeX's own message: it repeats its input
    node.classList.add("unreadable");
    node.title = gettext("This formula could not be typeset; you see its source.");
  }

  function typesetWithin(root) {
    root.querySelectorAll(".math:not([data-done])").forEach(typeset);
  }

  document.addEventListener("DOMContentLoaded", () => typesetWithin(document));
  document.addEventListener("htmx:afterSettle", (event) => typesetWithin(event.target));
  document.addEventListener("htmx:oobAfterSwap", (event) => typesetWithin(event.target));
})();
