const app = document.getElementById("app");

// Views by the first part of an address: what returns their content.
const views = { nodes: nodeView, physical: physicalView, network: networkView, ports: portsView, rules: rulesView, reach: reachView, drift: driftView, timeline: timelineView, search: searchView };

function missing(kind, name) {
  return [element("h2", {}, "Not in this page"), element("p", {}, "There is no " + kind + " ", label(name), ".")];
}

// absentOf says why a part is missing.
function absentOf(part) {
  return (theCase.absent || []).filter((absent) => absent.part === part).map((absent) => element("p", { class: "unsure" }, absent.why + ". ", absent.next ? element("code", {}, absent.next) : null));
}

function searchView(_, query) {
  const text = (query.q || "").trim(), wanted = text.toLowerCase();
  const has = (...texts) => texts.filter(Boolean).join(" ").toLowerCase().includes(wanted);
  const ports = [...portsOf(theCase.physical)].filter(({ box }) => box.kind === "bridge");
  const groups = [
    ["Nodes", theCase.nodes.filter((node) => has(node.name, node.host)), (node) => link(route("nodes", node.name), node.name)],
    ["Endpoints", theCase.endpoints.filter((end) => has(describeEnd(end))), (end) => [link(route("ports", end.name), end.name), element("span", { class: "note" }, " ", label(describeEnd(end), 200))]],
    ["Rules", theCase.rules.filter((rule) => has(rule.name, rule.uuid, ...(rule.columns || []).map((column) => column.value))), ruleEntry],
    ["Switches and routers", (theCase.logical ? theCase.logical.boxes : []).filter((box) => has(box.name, box.note)), (box) => link(networkRoute(box), titleOfBox(box))],
    ["Ports of bridges", ports.filter(({ port }) => has(port.name, ...(port.aliases || []))), ({ box, port }) => link(route("nodes", nodeOf(box), "ports", port.name), [nodeOf(box), box.name, port.name].join(" "))],
    ["Findings", theCase.check.findings.filter((finding) => has(finding.what, finding.rule, ...(finding.evidence || []))), (finding) => [link(route("findings", theCase.check.findings.indexOf(finding)), finding.severity.toUpperCase()), " ", label(finding.what, 300)]],
    ["Traces", (theCase.traces || []).filter((trace) => has(trace.question, trace.headline)), (trace) => link(route("traces", theCase.traces.indexOf(trace)), trace.question)],
    ["Timeline", theCase.timeline.filter((entry) => has(entry.text)), (entry) => link(withQuery(route("timeline"), { q: text }), time(entry.time) + " " + shorten(entry.text, 120))],
  ].filter(([, found]) => wanted !== "" && found.length > 0);
  return [element("h2", {}, "Search: ", label(text)), groups.length ? null : element("p", {}, "No name in this page has ", label(text), "."), flowsWith(text),
    groups.map(([title, found, show]) => [element("h3", {}, title + " (" + found.length.toLocaleString("en") + ")"), ...listOf(found, (one) => element("li", { class: "line" }, show(one)), "ul", 20)])];
}

// flowsWith leads to the flows of the nodes that have a text.
function flowsWith(text) {
  const nodes = theCase.nodes.filter((node) => node.chunk);
  return text && nodes.length ? element("p", {}, "Flows with this text on ", nodes.slice(0, 24).map((node, index) => [index ? ", " : "", link(withQuery(route("nodes", node.name, "flows"), { q: text }), node.name)]), nodes.length > 24 ? " and " + (nodes.length - 24) + " more nodes" : "") : null;
}

// partsOf returns the parts of an address. One that no link of the page has is taken as it is.
function partsOf(path) {
  try {
    return path.split("/").map(decodeURIComponent);
  } catch {
    return path.split("/");
  }
}

let shows = 0; // how often show was called

// show shows what the address of the page names, unless a later one was named meanwhile.
async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return; // a place in a drawn trace
  const number = ++shows;
  const [path, query] = location.hash.slice(2).split("?");
  const [view, ...rest] = partsOf(path);
  const drawn = await (views[view] ? views[view](rest, Object.fromEntries(new URLSearchParams(query))) : null);
  if (number !== shows) return;
  for (const part of document.querySelectorAll("main > section")) part.hidden = part !== app && part.dataset.view !== view;
  app.hidden = !drawn;
  app.replaceChildren(...[drawn].flat(Infinity).filter(Boolean));
  for (const tab of document.querySelectorAll("#tabs a")) {
    if (tab.hash.slice(2).split("/")[0] === (view === "nodes" ? "physical" : view)) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  showPart(view, rest[0]);
  const heading = document.querySelector("main > section:not([hidden]) h2");
  document.title = (drawn && heading ? shorten(heading.textContent, 60) + ", " : "") + theCase.title;
  document.body.dataset.shown = location.hash;
}

const scrolled = new Map(); // how far the view of an address was scrolled when the user left it

// follow shows the view of a new address. A view that the user comes back to is scrolled as it was.
async function follow(event) {
  scrolled.set(new URL(event.oldURL).hash, window.scrollY);
  const known = history.state && history.state.seen;
  await show();
  if (known && scrolled.has(location.hash)) window.scrollTo(0, scrolled.get(location.hash));
  history.replaceState({ seen: true }, "");
  const heading = document.querySelector("main > section:not([hidden]) h2");
  if (heading && !known) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

// showPart shows one of the findings or traces, or else the top of the page.
function showPart(view, name) {
  const traces = [...document.querySelectorAll(".drawn")];
  for (const trace of traces) trace.hidden = view === "traces" && trace.id !== "trace-" + name;
  const at = name !== undefined && document.getElementById({ findings: "finding-", traces: "trace-" }[view] + name);
  for (const chosen of document.querySelectorAll(".chosen")) chosen.classList.remove("chosen");
  if (at) {
    at.classList.add("chosen");
    at.scrollIntoView({ block: "start" });
  } else window.scrollTo(0, 0);
}

const longReason = 300;

// foldReasons folds long texts of the overview.
function foldReasons() {
  for (const reason of document.querySelectorAll(".absent td")) {
    const text = reason.textContent;
    if (text.length > longReason) reason.replaceChildren(element("details", { class: "long" }, element("summary", { title: text }, shorten(text, longReason)), text));
  }
}

// filterFindings shows the findings of a severity or with a text.
function filterFindings() {
  const severity = document.getElementById("severity"), text = document.getElementById("finding-text");
  const draw = () => {
    for (const finding of document.querySelectorAll(".finding[id]")) {
      finding.hidden = severity.value !== "" && !finding.classList.contains(severity.value) || !finding.textContent.toLowerCase().includes(text.value.toLowerCase());
    }
  };
  severity.addEventListener("change", draw);
  text.addEventListener("input", draw);
}

const mostPrinted = 2000; // entries of a list that printing opens
const paper = 680; // pixels across a page of paper

// prepareForPaper shows the further entries of lists, the whole of a picture, and a matrix that is no wider than paper.
function prepareForPaper() {
  for (const more of app.querySelectorAll("button.more")) {
    const list = more.previousElementSibling.querySelector("tbody") || more.previousElementSibling;
    while (!more.hidden && list.childElementCount < mostPrinted) more.click();
  }
  fitMatrix(paper);
  for (const shown of app.querySelectorAll(".network")) shown.dispatchEvent(new Event("print"));
}

async function begin() {
  await readCase();
  collectTargets();
  linkTexts();
  foldReasons();
  filterFindings();
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = withQuery(route("search"), { q: document.getElementById("query").value });
  });
  window.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) {
      event.preventDefault();
      document.getElementById("query").focus();
    }
  });
  history.scrollRestoration = "manual";
  history.replaceState({ seen: true }, "");
  window.addEventListener("hashchange", follow);
  window.addEventListener("beforeprint", prepareForPaper);
  window.addEventListener("afterprint", () => fitMatrix(Infinity));
  document.body.classList.add("live");
  await show();
  performance.mark("ready");
  document.body.dataset.ready = "yes";
}

begin();
