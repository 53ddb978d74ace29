// The page works without this; with it answers come in place, outputs are tabs and can be copied.

const form = document.querySelector("#query");
const busy = document.querySelector("#busy");
let chosen = "output-text";
let asked = 0;

function tabs() {
  const outputs = document.querySelector(".outputs");
  if (!outputs) return;
  const panels = [...outputs.querySelectorAll(".output")];
  const list = document.createElement("div");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Outputs");
  const buttons = panels.map((panel) => {
    const heading = panel.querySelector("h3");
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = "tab-" + panel.id;
    tab.textContent = heading.textContent;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    heading.remove();
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    if (panel.querySelector("code")) panel.prepend(copier(panel));
    list.append(tab);
    return tab;
  });
  const select = (k, focus) => {
    panels.forEach((panel, n) => {
      panel.hidden = n !== k;
      buttons[n].setAttribute("aria-selected", n === k);
      buttons[n].tabIndex = n === k ? 0 : -1;
    });
    chosen = panels[k].id;
    if (focus) buttons[k].focus();
  };
  buttons.forEach((tab, k) => {
    tab.addEventListener("click", () => select(k, false));
    tab.addEventListener("keydown", (event) => {
      const n = buttons.length;
      const to = { ArrowRight: k + 1, ArrowLeft: k + n - 1, Home: 0, End: n - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      select(to % n, true);
    });
  });
  outputs.prepend(list);
  select(Math.max(0, panels.findIndex((panel) => panel.id === chosen)), false);
}

function copier(panel) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(panel.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(panel.querySelector("code"));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

async function show(address, push) {
  const mine = ++asked;
  busy.textContent = "Deriving…";
  try {
    const reply = await fetch(address);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    if (mine !== asked) return;
    if (!page.querySelector("#answer")) throw new Error();
    if (push) history.pushState(null, "", address);
    document.title = page.title;
    for (const id of ["query", "answer"]) {
      document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes);
    }
    tabs();
    // What had the focus is gone: readers go on where the news is.
    const failed = document.querySelector("#error");
    const answer = document.querySelector("#answer");
    (failed ? document.querySelector("#e") : answer).focus({ preventScroll: true });
    const news = answer.querySelector(".formula, .problem");
    news?.scrollIntoView({ block: "nearest" });
    status(failed || !news ? "" : "Done");
  } catch {
    status("No answer; try again.");
  }
}

function status(text) {
  document.querySelector("#busy").textContent = text;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  show("/?" + new URLSearchParams(new FormData(form)), true);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest(".examples a");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  show(link.getAttribute("href"), true);
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
window.addEventListener("popstate", () => show(location.pathname + location.search, false));
tabs();
