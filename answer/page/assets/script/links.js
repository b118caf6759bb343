// Places in the page are named by the part of its address behind #.
function route(...parts) {
  return "#/" + parts.map((part) => encodeURIComponent(part)).join("/");
}

function withQuery(address, query) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return text ? address + "?" + text : address;
}

// link returns a link. Names that are long are cut.
function link(address, ...text) {
  return element("a", { href: address }, ...text.map((part) => (typeof part === "string" ? label(part) : part)));
}

// targets are the words and phrases that lead somewhere.
const targets = { words: new Map(), phrases: new Map() };

function addWord(word, address) {
  if (word && word.length > 1 && !targets.words.has(word)) targets.words.set(word, address);
}

// addPhrase adds a name of several words; it is found by its first word.
function addPhrase(phrase, address) {
  const first = phrase.split(" ", 1)[0];
  if (!targets.phrases.has(first)) targets.phrases.set(first, []);
  targets.phrases.get(first).push([phrase, address]);
}

// namesOfRules returns the rules by their names of several words, with and without what follows in parentheses: findings
// say "Service ns/web" of the rule "Service ns/web (load balancer lb)".
function namesOfRules() {
  const found = new Map();
  for (const rule of theCase.rules) {
    for (const name of new Set([rule.name, rule.name.split(" (")[0]])) {
      if (!name.includes(" ")) continue;
      if (!found.has(name)) found.set(name, []);
      found.get(name).push(rule);
    }
  }
  return found;
}

function collectTargets() {
  for (const node of theCase.nodes) {
    addWord(node.name, route("nodes", node.name));
    addWord(node.host, route("nodes", node.name));
  }
  for (const rule of theCase.rules) addWord(rule.uuid, route("rules", rule.uuid));
  for (const [name, rules] of namesOfRules()) addPhrase(name, rules.length > 1 ? withQuery(route("rules"), { q: name }) : route("rules", rules[0].uuid));
  for (const end of theCase.endpoints) {
    for (const word of [end.name, end.port, end.mac, ...(end.ips || [])]) addWord(word, route("ports", end.name));
  }
  for (const box of theCase.logical ? theCase.logical.boxes : []) {
    for (const name of [box.name, ...(box.aliases || [])]) addWord(name, networkRoute(box));
  }
  for (const list of targets.phrases.values()) list.sort((a, b) => b[0].length - a[0].length);
}

const word = /[\p{L}\p{N}_][\p{L}\p{N}_.:/@-]*/gu;

// linked returns a text as nodes, in which the names of what the page shows are links.
function linked(text) {
  const parts = [];
  let done = 0;
  for (const match of text.matchAll(word)) {
    if (match.index < done) continue;
    const [name, address] = targetAt(text, match);
    if (!address) continue;
    parts.push(text.slice(done, match.index), link(address, name));
    done = match.index + name.length;
  }
  parts.push(text.slice(done));
  return parts.filter((part) => part !== "");
}

function targetAt(text, match) {
  for (const [phrase, address] of targets.phrases.get(match[0]) || []) {
    if (text.startsWith(phrase, match.index) && !/^[\p{L}\p{N}_-]/u.test(text.slice(match.index + phrase.length))) return [phrase, address];
  }
  for (let name = match[0]; name; name = name.replace(/[.:/@-]+[^.:/@-]*$/, "") === name ? "" : name.replace(/[.:/@-]+[^.:/@-]*$/, "")) {
    if (targets.words.has(name)) return [name, targets.words.get(name)];
  }
  return [match[0], null];
}

// linkTexts makes links of the names in the parts of the page that need no script.
function linkTexts() {
  for (const found of document.querySelectorAll(".linked, .answer dd, .answer .rule, .answer li")) {
    if (found.children.length === 0 && !found.closest("svg")) found.replaceChildren(...linked(found.textContent));
  }
  document.querySelectorAll("#overview .node").forEach((name, index) => name.replaceChildren(link(route("nodes", theCase.nodes[index].name), theCase.nodes[index].name)));
}
