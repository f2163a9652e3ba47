// Pages that renew themselves rest while nobody looks at them.

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.requestConfig.verb === "get") event.preventDefault();
});
