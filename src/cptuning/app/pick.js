// Examples are picked with the mouse in the map or the list, or with the arrow keys in the list.
const things = () => [...element.querySelectorAll("[data-place]")];
const options = () => [...element.querySelectorAll("[role=option]")];

function mark(place) {
  for (const thing of things()) {
    const isPicked = thing.dataset.place === place;
    thing.classList.toggle("picked", isPicked);
    if (thing.role === "option") thing.setAttribute("aria-selected", isPicked);
  }
}

function pick(place) {
  mark(place);
  const option = options().find((o) => o.dataset.place === place);
  const list = option?.closest(".list");
  if (list) list.scrollTop = option.offsetTop - list.clientHeight / 3;
  trigger("select", { index: Number(place), value: place });
}

element.addEventListener("click", (event) => {
  const thing = event.target.closest("[data-place]");
  if (thing) pick(thing.dataset.place);
});

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
    pick(here.dataset.place);
  }
});

// A tooltip beside the pointer; its content is set as text, so it can't be HTML.
element.addEventListener("mousemove", (event) => {
  const tip = element.querySelector(".tip");
  if (!tip) return;
  const tipText = event.target.dataset?.tip;
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
