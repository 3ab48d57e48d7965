// Shows the wrong answers that hold a text, or of one kind: without it, all of them are listed.
"use strict";
const form = document.getElementById("find");
const more = document.getElementById("more");
const errors = Array.from(document.querySelectorAll(".error"));
const [text, kind] = [form.elements.text, form.elements.kind];
function filter() {
  const wanted = text.value.trim().toLowerCase();
  let found = 0;
  for (const error of errors) {
    const isFound = error.textContent.toLowerCase().includes(wanted)
      && (kind.value === "" || error.dataset.kind === kind.value);
    error.hidden = !isFound;
    found += isFound;
  }
  const isFiltered = wanted !== "" || kind.value !== "";
  if (more && isFiltered) more.open = true;
  form.elements.count.value = isFiltered ? `${found} of ${errors.length}` : "";
}
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", filter);
form.hidden = false;
