#!/bin/sh
# Installs Debian's chromium-headless-shell for the browser tests where it is missing and may be installed; never fails.
command -v chromium-headless-shell >/dev/null 2>&1 && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    command -v chromium >/dev/null 2>&1 || echo "chromium is missing and cannot be installed here: the browser tests will be skipped."
    exit 0
fi
echo "Installing chromium by apt for the browser tests"
{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium-headless-shell; } >/dev/null \
    || echo "chromium-headless-shell could not be installed: without chromium, too, the browser tests will be skipped."
exit 0
