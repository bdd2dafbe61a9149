// A line above the ledger that shows the claims with all of its words, or quoted phrases; a link to a claim unfolds it.
const folds = [...document.querySelectorAll("details.ledger")];
const rows = folds.flatMap(fold => [...fold.querySelectorAll("tbody tr")]);
const items = folds.flatMap(fold => [...fold.querySelectorAll("li")]).filter(item => item.querySelector("a[id]"));
const rowName = row => row.cells[0].textContent.trim();
const itemName = item => item.querySelector("a[id]").id;

// What is to be searched of each claim: its row of the table and its entry below.
const texts = new Map();
const add = (name, element) => texts.set(name, `${texts.get(name) || ""} ${element.textContent.toLowerCase()}`);
rows.forEach(row => add(rowName(row), row));
items.forEach(item => add(itemName(item), item));

function show(words) {
  const found = name => words.every(word => texts.get(name).includes(word));
  rows.forEach(row => { row.hidden = !found(rowName(row)); });
  items.forEach(item => { item.hidden = !found(itemName(item)); });
  for (const fold of folds) {
    fold.open = words.length > 0 && [...fold.querySelectorAll("tbody tr")].some(row => !row.hidden);
  }
  return rows.filter(row => !row.hidden).length;
}

function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  const fold = target && target.closest("details.ledger");
  if (!fold) return;
  fold.open = true;
  target.scrollIntoView();
}

const line = document.createElement("input");
const count = document.createElement("span");
line.type = "search";
line.placeholder = 'show claims with all of these words, e.g. cartpole "not met"';
line.addEventListener("input", () => {
  const words = (line.value.toLowerCase().match(/"[^"]+"|[^\s"]+/g) || []).map(word => word.replaceAll('"', ""));
  const shown = show(words);
  count.textContent = words.length ? ` ${shown} of ${rows.length} claims` : "";
});
document.getElementById("ledger-filter").append(line, count);
window.addEventListener("hashchange", unfold);
unfold();
