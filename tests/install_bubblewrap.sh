#!/bin/sh
# Installs Debian's bubblewrap for the tests of external commands where it is missing and may be installed; never fails.
command -v bwrap >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing bubblewrap by apt for the tests of external commands"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends bubblewrap; } >/dev/null 2>&1 && exit 0
fi
echo "bubblewrap is missing and cannot be installed here: the tests of external commands will be skipped."
exit 0
