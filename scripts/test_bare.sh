#!/usr/bin/env bash
# The README's two commands on a computer that has nothing: a bare Debian in a chroot, with HEAD of this checkout. What
# this computer happens to have installed helps nobody there. As in most containers, nobody may raise a priority.
# Usage, as root: test_bare.sh [root|user] [COMMAND]
#   root     (default) with git, make and python3 alone: set-up installs the rest
#   user     as an ordinary user, with the packages of the README's apt-get line
#   COMMAND  instead of `make run && make test`
# KEEP=1 keeps the folder of the bare computer and prints it. BARE_SUITE names another release than bookworm, BARE_MIRROR
# another mirror. Not as root, or without debootstrap, this says so and ends with status 0.
set -euo pipefail
cd "$(dirname "$0")/.."
who=${1:-root}
case $who in root | user) ;; *) echo "error: '$who' is nobody; valid are root and user" >&2; exit 2 ;; esac
skip() { echo "skipped the bare computer: $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip "only root can make one"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (apt-get install debootstrap)"
unshare --mount --pid --fork true 2>/dev/null || skip "this computer allows no namespaces (unshare)"

suite=${BARE_SUITE:-bookworm}
mirror=${BARE_MIRROR:-http://deb.debian.org/debian}
kept=${XDG_CACHE_HOME:-$HOME/.cache}/bid_ros/bare-$suite
if [ ! -d "$kept" ]; then
  echo "fetching a bare $suite from $mirror"
  mkdir -p "${kept%/*}"
  rm -rf "$kept.part"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$kept.part" "$mirror" >"$kept.log" 2>&1 \
    || { tail -n 5 "$kept.log" >&2; exit 1; }
  mv "$kept.part" "$kept"
fi
bare=$(mktemp -d /var/tmp/bare-XXXXXX)
if [ -n "${KEEP:-}" ]; then echo "the bare computer is in $bare"; else trap 'rm -rf --one-file-system "$bare"' EXIT; fi
cp -a "$kept/." "$bare"
# How this computer reaches the network, the bare one does too: names, proxies, and certificates of these.
cp -L /etc/resolv.conf "$bare/etc/resolv.conf"
{ grep -rliE 'proxy|cainfo' /etc/apt/apt.conf.d || true; } | xargs -r cp -t "$bare/etc/apt/apt.conf.d"
certificates=/etc/ssl/certs/ca-certificates.crt
cp -L $certificates "$bare$certificates"

case $who in
  root)
    home=/root
    packages="git make python3"
    ;;
  user)
    home=/home/somebody
    chroot "$bare" /usr/sbin/useradd --create-home --shell /bin/bash somebody
    packages=$(sed -n 's/^sudo apt-get install //p' README.md)
    ;;
esac
git clone --quiet --no-hardlinks . "$bare$home/bid_ros"
[ $who = root ] || chroot "$bare" /bin/chown -R somebody: $home/bid_ros

# Run a line there as somebody. What it mounts and starts ends with it.
inside() {
  local as=$1 line=$2
  unshare --mount --pid --fork --kill-child bash -euc '
    for folder in dev sys; do mount --rbind /$folder "$0/$folder"; mount --make-rslave "$0/$folder"; done
    mount -t proc proc "$0/proc"
    mount -t tmpfs tmpfs "$0/dev/shm"
    cd "$0"
    exec setpriv --bounding-set=-sys_nice chroot "$0" /bin/su - "$1" -s /bin/bash -c "$2"
  ' "$bare" "$as" "export DEBIAN_FRONTEND=noninteractive SSL_CERT_FILE=$certificates PIP_CERT=$certificates \
    REQUESTS_CA_BUNDLE=$certificates${https_proxy:+ https_proxy=$https_proxy}${http_proxy:+ http_proxy=$http_proxy}; $line"
}
echo "a bare $suite, as $who, with the packages $packages"
inside root "apt-get -qq update && apt-get -qq install -y $packages >/dev/null"
user=root
[ $who = root ] || user=somebody
if [ $# -ge 2 ]; then
  inside $user "cd $home/bid_ros && $2"
else
  inside $user "cd $home/bid_ros && make run" 2>&1 | tee "$bare/run.log"
  grep -q '^success  *3 of 3 ' "$bare/run.log" || { echo "error: make run did not place 3 of 3" >&2; exit 1; }
  inside $user "cd $home/bid_ros && make test"
fi
