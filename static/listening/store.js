// What this device keeps of a session: answers on their way, and the trial that is being worked on.
// Where a browser allows no storage (some frames of crowd platforms), the page itself remembers.

export class Store {
  constructor(name) {
    this.prefix = `listening:${name}:`;
    this.inPage = new Map();
  }

  read(key) {
    try {
      const text = this.inPage.get(key) ?? localStorage.getItem(this.prefix + key);
      return text ? JSON.parse(text) : null;
    } catch {
      return null;
    }
  }

  /** Keep a value; false where it would not outlive the page. */
  write(key, value) {
    const text = JSON.stringify(value);
    try {
      localStorage.setItem(this.prefix + key, text);
      this.inPage.delete(key);
      return true;
    } catch {
      this.inPage.set(key, text);
      return false;
    }
  }

  remove(key) {
    this.inPage.delete(key);
    try {
      localStorage.removeItem(this.prefix + key);
    } catch {
      // Nothing was kept there either.
    }
  }
}
