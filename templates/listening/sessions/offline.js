// Keeps the page of a session's trials, with its scripts and styles, so that it can be loaded again without a connection.
// No sound and nothing of other pages is kept. Once the page is another one, as at the end, all of it goes.

const page = registration.scope;
const name = `page ${page}`;

addEventListener("install", (event) => event.waitUntil(fetch(page).then(keep)));

addEventListener("fetch", (event) => {
  const { destination, method, url } = event.request;
  const isPage = destination === "document" && url === page;
  if (method === "GET" && (isPage || ["script", "style"].includes(destination))) {
    event.respondWith(answer(event.request, isPage));
  }
});

async function answer(request, isPage) {
  try {
    const response = await fetch(request);
    if (isPage && response.status < 500) await keep(response.clone());
    return response;
  } catch (error) {
    const kept = await caches.match(request, { cacheName: name });
    if (!kept) throw error;
    return kept;
  }
}

async function keep(response) {
  const text = await response.clone().text();
  if (!text.includes('id="trials"')) {
    await caches.delete(name);
    return registration.unregister();
  }
  const cache = await caches.open(name);
  const parts = Array.from(text.matchAll(/(?:href|src|data-module)="([^"]+\.(?:js|css))"/g), ([, address]) => address);
  await cache.addAll([...new Set(parts)]);
  return cache.put(page, response);
}
