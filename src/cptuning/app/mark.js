// Words are marked by dragging over them, by a click on one, or with the keyboard: the arrow keys
// go from word to word, with Shift they take more of them along, Enter marks, Delete removes.
const wordsOf = (row) => [...row.querySelectorAll("[data-word]")];
const numberOf = (word) => Number(word.dataset.word);

// The row and the two ends of what is being marked.
let row = null;
let [from, to] = [0, 0];
let isDragging = false;
let isTyping = false;

function show() {
  for (const word of element.querySelectorAll("[data-word]")) {
    const number = numberOf(word);
    const isIn = row?.contains(word) && number >= Math.min(from, to) && number <= Math.max(from, to);
    word.classList.toggle("chosen", Boolean(isIn));
  }
}

function stop() {
  [row, isDragging, isTyping] = [null, false, false];
  show();
}

const tell = (what, place, more) => trigger("select", { index: Number(place), value: { do: what, ...more } });
const mark = () => tell("mark", row.dataset.place, { first: from, last: to });

element.addEventListener("pointerdown", (event) => {
  const word = event.target.closest("[data-word]");
  if (!word || event.button !== 0 || word.closest("[data-do]")) return;
  event.preventDefault(); // No text is selected meanwhile.
  word.releasePointerCapture?.(event.pointerId); // A finger, too, goes from word to word.
  row = word.closest(".words");
  row.focus({ preventScroll: true });
  from = to = numberOf(word);
  [isDragging, isTyping] = [true, false];
  show();
});

element.addEventListener("pointermove", (event) => {
  if (!isDragging) return;
  const word = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-word]");
  if (word && row.contains(word)) {
    to = numberOf(word);
    show();
  }
});

element.addEventListener("pointerup", () => {
  if (!isDragging) return;
  mark();
  stop();
});
element.addEventListener("pointercancel", stop); // The finger scrolls the page.
window.addEventListener("pointerup", () => isDragging && stop()); // Let go beside the texts.

element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (!button) return;
  const { do: what, at, label } = button.dataset;
  if (what === "unmark") tell(what, button.closest(".words").dataset.place, { word: Number(at) });
  else tell(what, at ?? 0, { label });
});

element.addEventListener("keydown", (event) => {
  const here = event.target;
  if (!here.classList.contains("words")) return;
  const last = wordsOf(here).length - 1;
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  if (event.key in steps) {
    event.preventDefault();
    const isFirst = row !== here;
    row = here;
    isTyping = true;
    to = isFirst ? 0 : Math.max(0, Math.min(last, to + steps[event.key]));
    if (isFirst || !event.shiftKey) from = to;
    show();
  } else if (row === here && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    mark();
  } else if (row === here && (event.key === "Delete" || event.key === "Backspace")) {
    event.preventDefault();
    tell("unmark", row.dataset.place, { word: to });
  } else if (event.key === "Escape") stop();
});

// After each change the texts are written anew: whoever types goes on where he was.
new MutationObserver(() => {
  if (!isTyping || !row || row.isConnected) return;
  row = element.querySelector(`.words[data-place="${row.dataset.place}"]`);
  row?.focus({ preventScroll: true });
  show();
}).observe(element, { childList: true, subtree: true });
