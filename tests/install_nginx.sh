#!/bin/sh
# Unpacks Debian's nginx into a folder, for the tests of deploy/nginx.conf, where it is missing; starts and installs nothing, and never fails.
PATH="$PATH:/usr/sbin" command -v nginx >/dev/null 2>&1 && exit 0
[ -x "$1/usr/sbin/nginx" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Unpacking nginx for the tests of the example of a proxy"
    mkdir -p "$1" && cd "$1" || exit 0
    { apt-get update -qq && apt-get download -qq nginx && dpkg-deb -x nginx_*.deb .; } >/dev/null 2>&1 && exit 0
fi
echo "nginx is missing and cannot be unpacked here: the tests of the example of a proxy will be skipped."
exit 0
