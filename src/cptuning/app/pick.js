// Examples are picked with the mouse in the map or a list, or with the arrow keys in a list.
// A button with data-do asks for more than that: to relabel, to settle a conflict, to merge.
const things = () => [...element.querySelectorAll("[data-place]:not([data-do])")];
const options = () => [...element.querySelectorAll("[role=option]:not([hidden])")];

function mark(place) {
  for (const thing of things()) {
    const isPicked = thing.dataset.place === place;
    thing.classList.toggle("picked", isPicked);
    if (thing.role === "option") thing.setAttribute("aria-selected", isPicked);
  }
}

// The card opens beside this place; see #editor in page.css.
function placeCard(x, y) {
  const style = document.documentElement.style;
  const [width, height] = [340, 320];
  style.setProperty("--card-x", `${Math.max(8, Math.min(x + 14, window.innerWidth - width))}px`);
  style.setProperty("--card-y", `${Math.max(8, Math.min(y + 14, window.innerHeight - height))}px`);
}

function pick(place, x, y) {
  mark(place);
  const tip = element.querySelector(".tip");
  if (tip) tip.hidden = true;
  placeCard(x, y);
  // On a phone the card is a sheet over the lower half: what was picked moves above it.
  const isPhone = window.matchMedia("(max-width: 700px)").matches;
  if (isPhone && y > window.innerHeight / 2) window.scrollBy(0, y - window.innerHeight / 4);
  const option = options().find((o) => o.dataset.place === place);
  const list = option?.closest(".list");
  if (list) list.scrollTop = option.offsetTop - list.clientHeight / 3;
  trigger("select", { index: Number(place), value: { do: "pick" } });
}

element.addEventListener("click", (event) => {
  const thing = event.target.closest("[data-place]");
  if (!thing) return;
  const { do: what, place, label, other } = thing.dataset;
  if (what) trigger("select", { index: Number(place), value: { do: what, label, other } });
  else pick(place, event.clientX, event.clientY);
});

// From the keyboard the way leads on into the card, once it is there.
function focusCard(patience) {
  const card = document.querySelector("#editor");
  if (card?.offsetHeight) card.querySelector("input")?.focus();
  else if (patience > 0) setTimeout(focusCard, 50, patience - 1);
}

element.addEventListener("keydown", (event) => {
  const here = event.target.closest("[role=option]");
  if (!here) return;
  const all = options();
  const at = all.indexOf(here);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    all[Math.max(0, Math.min(next, all.length - 1))].focus();
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    const box = here.getBoundingClientRect();
    pick(here.dataset.place, box.left + box.width / 2, box.top);
    focusCard(40);
  }
});

element.addEventListener("input", (event) => {
  if (event.target.type !== "search") return;
  const wanted = event.target.value.toLowerCase();
  const all = [...element.querySelectorAll("[role=option]")];
  for (const option of all) option.hidden = !option.textContent.toLowerCase().includes(wanted);
  for (const [number, option] of options().entries()) option.tabIndex = number ? -1 : 0;
});

// A tooltip beside the pointer; its content is set as text, so it can't be HTML.
element.addEventListener("mousemove", (event) => {
  const tip = element.querySelector(".tip");
  if (!tip) return;
  const isOpen = document.querySelector("#editor")?.offsetHeight > 0;
  const tipText = isOpen ? "" : event.target.dataset?.tip;
  tip.hidden = !tipText;
  if (!tipText) return;
  tip.textContent = tipText;
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8);
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top}px`;
});
element.addEventListener("mouseleave", () => {
  const tip = element.querySelector(".tip");
  if (tip) tip.hidden = true;
});
