const levels = { emer: 0, err: 1, warn: 2, info: 3, dbg: 4 };

function timelineView(_, query) {
  const list = element("div", {});
  const state = chosenFrom(query, "at", "q", "what", "node");
  function draw() {
    const wanted = state.q.toLowerCase();
    const found = theCase.timeline.filter((entry) => (state.node === "" || entry.node === state.node) && isOfKind(entry, state.what) && atMoment(entry, state.at) && [entry.node, entry.program, entry.database, annotated(entry)].filter(Boolean).join(" ").toLowerCase().includes(wanted));
    list.replaceChildren(element("p", { class: "note" }, count(found.length, "entry", "entries")), ...listOf(found, entryLine, "ol"));
  }
  draw();
  return [element("h2", {}, "Timeline"), absentOf("Timeline"), filters([
    { name: "at", label: "at", placeholder: "at, as 14:02 or 2026-11-27" },
    { name: "q", label: "filter the timeline", placeholder: "text" },
    { name: "what", label: "what", options: [["", "changes and logs"], ["changes", "changes of databases"], ["problems", "errors and warnings"]] },
    ...(theCase.nodes.length > 1 ? [{ name: "node", label: "node", options: [["", "all nodes"], ...theCase.nodes.map((node) => [node.name, node.name])] }] : []),
  ], state, draw), list];
}

// isOfKind reports whether an entry is a change of a database, or a problem.
function isOfKind(entry, kind) {
  return kind === "changes" ? !!entry.database : kind === "problems" ? levels[(entry.level || "").toLowerCase()] <= levels.warn : true;
}

// atMoment reports whether an entry is of a moment, which is a part of a time: "14:02", or a date.
function atMoment(entry, at) {
  if (at === "") return true;
  const from = time(entry.time), until = time(entry.until || entry.time);
  const clock = /^\d{1,2}:\d{2}/.test(at);
  const part = (moment) => (clock ? moment.slice(11) : moment).slice(0, at.length);
  return part(from) <= at && at <= part(until);
}

function entryLine(entry) {
  const level = (entry.level || "").toLowerCase();
  const source = [entry.node, entry.database || entry.program, entry.module].filter(Boolean).join(" ");
  return element("li", { class: "event " + (entry.database ? "change" : levels[level] <= 1 ? "bad" : level === "warn" ? "unsure" : "") },
    element("a", { class: "moment", href: withQuery(route("timeline"), { at: time(entry.time).slice(0, 16) }) }, time(entry.time) || "no time"), element("span", { class: "source" }, label(source, 60)),
    element("span", { class: "what" }, textOf(entry), entry.count > 1 ? element("span", { class: "note" }, " " + entry.count.toLocaleString("en") + " times until " + time(entry.until)) : null));
}

// textOf returns the text of an entry. What is further in a long one is shown when it is asked for.
function textOf(entry) {
  const most = 600, text = annotated(entry);
  if (text.length <= most) return linked(text);
  return element("details", { class: "long" }, element("summary", { title: text }, shorten(text, most)), linked(text));
}

// annotated returns the text of an entry, and behind it what users call what it names.
function annotated(entry) {
  return entry.text + (entry.names ? "  [" + entry.names.map((one) => one.word + " = " + one.name).join(", ") + "]" : "");
}

// entriesNaming lists the entries of the timeline that have one of some names.
function entriesNaming(names) {
  const found = theCase.timeline.filter((entry) => names.some((name) => mentions(annotated(entry), name)));
  return found.length ? [element("h3", {}, "In the timeline"), ...listOf(found, entryLine, "ol", 20)] : null;
}

// mentions reports whether a text has a name that is not a part of another one.
function mentions(text, name) {
  const part = /[\p{L}\p{N}_.:/@-]/u;
  for (let at = text.indexOf(name); name && at >= 0; at = text.indexOf(name, at + 1)) {
    const before = text[at - 1] || " ", after = text.slice(at + name.length, at + name.length + 2);
    if (!part.test(before) && (after === "" || !part.test(after[0]) || /^[.:](\s|$)/.test(after) || /^[.:]$/.test(after))) return true;
  }
  return false;
}

function findingEntry(finding) {
  const index = theCase.check.findings.indexOf(finding);
  return element("li", { class: "finding " + finding.severity }, link(route("findings", index), finding.severity.toUpperCase()), " ", linked(finding.what));
}

function findingsAbout(isAbout) {
  const found = theCase.check.findings.filter(isAbout);
  return found.length ? [element("h3", {}, "Findings"), ...listOf(found, findingEntry, "ul", 50)] : null;
}

function findingsNaming(names) {
  return findingsAbout((finding) => names.some((name) => mentions([finding.what, ...(finding.evidence || [])].join(" "), name)));
}

function tracesNaming(names) {
  const found = (theCase.traces || []).map((trace, index) => [trace, index]).filter(([trace]) => names.some((name) => mentions(trace.question, name)));
  return found.length ? [element("h3", {}, "Traces"), element("ul", {}, found.map(([trace, index]) => element("li", {}, link(route("traces", index), trace.question), " ", element("strong", { class: verdictClass(trace.verdict) }, trace.verdict || "not asked"))))] : null;
}

const differences = [["missing", "Missing on the node"], ["extra", "Not computed"], ["altered", "Different"], ["changing", "While the node was changing"], ["either", "One of several that OVN may install"]];

function driftView() {
  const size = (node) => (node.drift ? ["missing", "extra", "altered"].map((key) => sizeOf(node.drift, key)) : ["", "", ""]);
  const sum = (node) => size(node).reduce((all, one) => all + Number(one), 0);
  const rows = [...theCase.nodes].sort((a, b) => sum(b) - sum(a)).map((node) => element("tr", {}, cell(link(route("nodes", node.name, "drift"), node.name)),
    cell(node.drift ? element("strong", { class: { "no drift": "good", drift: "bad" }[node.drift.verdict] || "unsure" }, node.drift.verdict) : "not compared"), size(node).map((number) => element("td", {}, String(number))), element("td", { class: "sentence" }, node.drifted || "")));
  return [element("h2", {}, "Drift"), element("p", { class: "note" }, "The recorded flows of each node, and those that OVN computes from the databases."), absentOf("Drift"), element("div", { class: "scroll" }, element("table", { class: "wide" }, headRow(["node", "verdict", "missing", "extra", "altered", ""]), element("tbody", {}, rows)))];
}

function sizeOf(report, key) {
  return (report[key] || []).reduce((sum, difference) => sum + difference.count, 0);
}

function driftOfNode(node) {
  if (!node.drift) return [element("p", {}, "The flows of this node were not compared with what OVN computes."), absentOf("Drift")];
  return [element("p", {}, node.drifted), (node.drift.doubts || []).map((text) => element("p", { class: "unsure" }, text)),
    differences.map(([key, title]) => ((node.drift[key] || []).length ? [element("h3", {}, title), element("ul", {}, node.drift[key].map((difference) => element("li", {}, element("details", {}, element("summary", {}, count(difference.count, "entry", "entries") + " of ", linked(difference.what), difference.note ? "; " + difference.note : ""), ...listOf(difference.entries, differenceEntry, "ul", 50)))))] : null)),
    (node.drift.remarks || []).map((text) => element("p", { class: "note" }, text))];
}

function differenceEntry(entry) {
  return element("li", {}, facts([["recorded", entry.recorded && element("code", {}, entry.recorded)], ["computed", entry.computed && element("code", {}, entry.computed)], ["differs", entry.differs], ["packets", entry.packets]]));
}
