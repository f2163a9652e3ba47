/** A length of time that is only estimated, in words. */
export function roughly(seconds) {
  if (seconds < 5) return "a few seconds";
  if (seconds < 58) return `about ${5 * Math.round(seconds / 5)} s`;
  if (seconds < 90 * 60) return `about ${Math.max(1, Math.round(seconds / 60))} min`;
  return `about ${Math.round(seconds / 3600)} h`;
}
